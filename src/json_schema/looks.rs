//! How often schemas look at one part of a value, however many keys they name.
//!
//! A part stands at one key of what is around it, so the schemas of its other keys do not look at it.

use std::collections::{BTreeMap, HashMap};

use super::graph::Graph;
use super::keywords::AppliesTo;

/// How many steps from schema to schema are followed in all; where there are more, it is not known how often they look.
const STEPS: usize = 5_000_000;

/// How many references are followed from one to the next.
const REFERENCES: u64 = 1_000;

/// For a schema and those that it leads to for the same part: how often they look there at most at a depth below.
pub(super) struct LooksByDepth {
    entries: Vec<Entry>,
    root: Way,
    /// Of each entry, at the present depth.
    looks: Vec<u64>,
    is_top: bool,
    is_settled: bool,
}

/// A schema, with those that it leads to for the same part.
struct Entry {
    /// How often they look at the part.
    here: u64,
    /// What looks at any part below.
    any: Vec<Way>,
    /// What looks at the part at one key or index.
    keys: Vec<Vec<Way>>,
}

/// How one schema leads to another.
#[derive(Clone, Copy)]
struct Way {
    entry: usize,
    times: u64,
    /// The references between the two, which look at the part and lead on.
    references: u64,
}

/// Schemas that look at one part, by their place in the order of the graph, with how often each does.
type PartLooks = BTreeMap<usize, u64>;

impl LooksByDepth {
    /// Follows a schema; one that looks at a part more than `most` times is not followed to the parts below.
    pub(super) fn new(graph: &Graph<'_>, order: &[usize], root: usize, most: u64) -> Self {
        let mut builder = EntryBuilder::new(graph, order, most);
        let root = builder.way(root, 1);
        let mut entries = Vec::new();
        while let Some(member) = builder.members.get(entries.len()).copied() {
            entries.push(builder.entry(member));
        }
        let mut looks: Vec<u64> = entries.iter().map(|it| it.here).collect();
        let is_unknown = builder.steps == 0;
        if is_unknown {
            looks.fill(u64::MAX);
        }
        Self { entries, root, looks, is_top: true, is_settled: is_unknown }
    }

    /// Returns how often schemas look at one part at the present depth at most, and goes one deeper.
    pub(super) fn descend(&mut self) -> u64 {
        let found = self.count(self.root);
        if !self.is_settled {
            let all = |ways: &Vec<Way>| {
                ways.iter().fold(0_u64, |all, it| all.saturating_add(self.count(*it)))
            };
            let below = |it: &Entry| {
                let most = it.keys.iter().map(all).max().unwrap_or_default();
                all(&it.any).saturating_add(most)
            };
            let below: Vec<u64> = self.entries.iter().map(below).collect();
            self.is_settled = !self.is_top && below == self.looks;
            self.looks = below;
            self.is_top = false;
        }
        found
    }

    fn count(&self, way: Way) -> u64 {
        let references = if self.is_top { way.references } else { 0 };
        let looks = self.looks.get(way.entry).copied().unwrap_or_default();
        looks.saturating_add(references).saturating_mul(way.times)
    }
}

/// Follows schemas to what they lead to.
struct EntryBuilder<'g, 'v> {
    graph: &'g Graph<'v>,
    order: &'g [usize],
    /// The place of each schema in the order.
    places: HashMap<usize, usize>,
    /// The schema of each entry.
    members: Vec<usize>,
    numbers: HashMap<usize, usize>,
    /// How many steps are left.
    steps: usize,
    most: u64,
}

impl<'g, 'v> EntryBuilder<'g, 'v> {
    fn new(graph: &'g Graph<'v>, order: &'g [usize], most: u64) -> Self {
        let places = order.iter().enumerate().map(|(place, number)| (*number, place)).collect();
        Self {
            graph,
            order,
            places,
            members: Vec::new(),
            numbers: HashMap::new(),
            steps: STEPS,
            most,
        }
    }

    /// Returns the way to a schema, past those that only refer to another, so that each is followed once.
    fn way(&mut self, target: usize, times: u64) -> Way {
        let (mut target, mut references) = (target, 0);
        while let Some(member) = self.graph.members.get(target)
            && let [(next, AppliesTo::Same)] = member.edges.as_slice()
            && !member.asks_again
            && references < REFERENCES
        {
            target = *next;
            references += 1;
        }
        let members = &mut self.members;
        let entry = *self.numbers.entry(target).or_insert_with(|| {
            members.push(target);
            members.len() - 1
        });
        Way { entry, times, references }
    }

    fn entry(&mut self, member: usize) -> Entry {
        let mut here = 0_u64;
        let mut part: PartLooks = self.places.get(&member).map(|it| (*it, 1)).into_iter().collect();
        let mut any = PartLooks::new();
        let mut keys: HashMap<AppliesTo<'v>, PartLooks> = HashMap::new();
        // Those come first that lead to others for the same part.
        while let Some((place, own)) = part.pop_first() {
            here = here.saturating_add(own);
            let member = self.order.get(place).and_then(|it| self.graph.members.get(*it));
            let Some(member) = member else { continue };
            self.steps = self.steps.saturating_sub(1 + member.edges.len());
            if self.steps == 0 || here > self.most {
                return Entry { here: u64::MAX, any: Vec::new(), keys: Vec::new() };
            }
            let times = own.saturating_mul(1 + u64::from(member.asks_again));
            for (target, step) in &member.edges {
                let Some(place) = self.places.get(target) else { continue };
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
        let any = self.ways(any);
        let keys = keys.into_values().map(|it| self.ways(it)).collect();
        Entry { here, any, keys }
    }

    fn ways(&mut self, looks: PartLooks) -> Vec<Way> {
        let order = self.order;
        let members =
            looks.into_iter().filter_map(|(place, times)| Some((*order.get(place)?, times)));
        members.map(|(target, times)| self.way(target, times)).collect()
    }
}
