//! How often schemas look at one part of a value.
//!
//! A part stands at one key of what is around it, so the schemas of other keys do not look at it: those
//! that look at the parts at different keys are followed apart, however many keys a schema has.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::graph::Graph;
use super::keywords::AppliesTo;

/// How many schemas are followed apart. After those, what looks at any part of a level counts as if it
/// looked at each.
const FOLLOWED: usize = 500_000;

/// The schemas that look at one part, by their place in the order of the graph, with how often each does.
type PartLooks = BTreeMap<usize, u64>;

/// A search for the part of each level that schemas look at most often.
pub(super) struct LookSearch<'g, 'v> {
    graph: &'g Graph<'v>,
    order: &'g [usize],
    /// The place of each schema in the order; one that leads to itself has the one behind the last.
    places: Vec<usize>,
    /// The parts of the next level.
    level: Vec<PartLooks>,
    /// What was followed before. At a deeper level the same leads to nothing else.
    known: HashSet<PartLooks>,
    left: usize,
}

impl<'g, 'v> LookSearch<'g, 'v> {
    pub(super) fn new(graph: &'g Graph<'v>, order: &'g [usize], root: usize) -> Self {
        let mut places = vec![order.len(); graph.members.len()];
        for (place, number) in order.iter().enumerate() {
            if let Some(it) = places.get_mut(*number) {
                *it = place;
            }
        }
        let root = places.get(root).copied().unwrap_or_default();
        let level = vec![PartLooks::from([(root, 1)])];
        Self { graph, order, places, level, known: HashSet::new(), left: FOLLOWED }
    }

    /// Returns how often schemas look at one part of the next level at most, and goes on to the level below.
    pub(super) fn descend(&mut self) -> u64 {
        let mut most = 0;
        let mut below = Vec::new();
        let mut waiting = std::mem::take(&mut self.level);
        if self.left == 0 {
            waiting = merged(waiting);
        }
        while let Some(part) = waiting.pop() {
            if self.known.contains(&part) {
                continue;
            }
            most = most.max(self.follow(&part, &mut below));
            if self.left == 0 {
                waiting = merged(waiting);
                below = merged(below);
            } else {
                self.known.insert(part);
            }
        }
        self.level = below;
        most
    }

    /// Returns how often schemas look at a part in all, and adds the parts below it.
    fn follow(&mut self, part: &PartLooks, below: &mut Vec<PartLooks>) -> u64 {
        let mut all = 0_u64;
        let mut part = part.clone();
        let mut any = PartLooks::new();
        let mut keys: HashMap<AppliesTo<'v>, PartLooks> = HashMap::new();
        let mut followed = 0;
        // Those come first that lead to others for the same part.
        while let Some((place, own)) = part.pop_first() {
            all = all.saturating_add(own);
            let member = self.order.get(place).and_then(|it| self.graph.members.get(*it));
            let Some(member) = member else { continue };
            followed += 1 + member.edges.len();
            let times = own.saturating_mul(1 + u64::from(member.asks_again));
            for (target, step) in &member.edges {
                let Some(place) = self.places.get(*target) else { continue };
                let looks = match step {
                    AppliesTo::Same => &mut part,
                    AppliesTo::Any => &mut any,
                    AppliesTo::Key(_) | AppliesTo::Index(_) => keys.entry(*step).or_default(),
                    AppliesTo::None => continue,
                };
                let it = looks.entry(*place).or_default();
                *it = it.saturating_add(times);
            }
        }
        followed += any.len().saturating_mul(keys.len());
        self.left = self.left.saturating_sub(followed);
        self.add(any, keys, below);
        all
    }

    /// Adds the parts at each key, at which that looks which looks at any.
    fn add(
        &self,
        any: PartLooks,
        keys: HashMap<AppliesTo<'v>, PartLooks>,
        below: &mut Vec<PartLooks>,
    ) {
        let mut of_keys: Vec<PartLooks> = keys.into_values().collect();
        if self.left == 0 {
            of_keys = merged(of_keys);
        }
        if of_keys.is_empty() && !any.is_empty() {
            of_keys.push(PartLooks::new());
        }
        for mut part in of_keys {
            for (place, times) in &any {
                let it = part.entry(*place).or_default();
                *it = it.saturating_add(*times);
            }
            below.push(part);
        }
    }
}

/// Returns one part at which each schema looks as often as at any of some.
fn merged(parts: Vec<PartLooks>) -> Vec<PartLooks> {
    let all = parts.into_iter().reduce(|mut all, part| {
        for (place, times) in part {
            let most = all.entry(place).or_default();
            *most = times.max(*most);
        }
        all
    });
    all.into_iter().collect()
}
