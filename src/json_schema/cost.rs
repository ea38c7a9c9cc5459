//! What schemas cost, worked out before they are used.
//!
//! A reference may lead back to the same value without end, and a few lines of references make a
//! validator look at one value a billion times: `a` is all of `b` and `b`, which is all of `c` and
//! `c`. So for each level of a value it is counted how often schemas look at one part of it, and
//! through how many of each other. That bounds what a validator does, whatever the value is.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::file::{SchemaFile, invalid};
use super::graph::Graph;
use super::keywords::AppliesTo;
use super::looks::LooksByDepth;
use crate::diagnostic::Diagnostic;
use crate::document::Limits;

/// How often schemas may look at one part of a value.
const LOOKS: u64 = 2_000;

/// Through how many schemas a schema may lead to another: each takes some of the stack.
const CHAIN: u64 = 400;

/// Returns the schemas with those first that lead to others for the same value; those that lead to
/// themselves are not among them.
pub(super) fn order(graph: &Graph<'_>) -> Vec<usize> {
    let mut incoming = vec![0_usize; graph.members.len()];
    for target in (0..graph.members.len()).flat_map(|it| same(graph, it)) {
        if let Some(count) = incoming.get_mut(target) {
            *count += 1;
        }
    }
    let starts = incoming.iter().enumerate().filter(|(_, count)| **count == 0);
    let mut order: Vec<usize> = starts.map(|(number, _)| number).collect();
    let mut next = 0;
    while let Some(number) = order.get(next).copied() {
        next += 1;
        for target in same(graph, number) {
            if let Some(count) = incoming.get_mut(target) {
                *count -= 1;
                if *count == 0 {
                    order.push(target);
                }
            }
        }
    }
    order
}

/// Says which schemas lead to themselves, each circle once.
pub(super) fn circles(graph: &Graph<'_>, order: &[usize], files: &[SchemaFile]) -> Vec<Diagnostic> {
    let mut left = in_circles(graph, order);
    let mut found = Vec::new();
    while let Some(start) = left.first().copied() {
        let walked = walk(graph, start, &left);
        found.extend(circle(graph, &walked, files));
        for number in walked {
            left.remove(&number);
        }
    }
    found
}

/// Returns the schemas that lead to themselves, and those between two of them.
fn in_circles(graph: &Graph<'_>, order: &[usize]) -> BTreeSet<usize> {
    let sorted: BTreeSet<usize> = order.iter().copied().collect();
    let mut left: BTreeSet<usize> =
        (0..graph.members.len()).filter(|it| !sorted.contains(it)).collect();
    // What lies behind a circle comes to an end, and is taken away from there.
    let mut ahead: BTreeMap<usize, usize> = left.iter().map(|it| (*it, 0)).collect();
    let mut behind: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for number in &left {
        for target in same(graph, *number).filter(|it| left.contains(it)) {
            *ahead.entry(*number).or_default() += 1;
            behind.entry(target).or_default().push(*number);
        }
    }
    let mut ends: Vec<usize> =
        ahead.iter().filter(|(_, count)| **count == 0).map(|(number, _)| *number).collect();
    while let Some(end) = ends.pop() {
        left.remove(&end);
        for number in behind.get(&end).into_iter().flatten() {
            let count = ahead.entry(*number).or_default();
            *count = count.saturating_sub(1);
            if *count == 0 {
                ends.push(*number);
            }
        }
    }
    left
}

/// Returns what a schema leads to for the same value.
fn same(graph: &Graph<'_>, number: usize) -> impl Iterator<Item = usize> + Clone {
    let edges = graph.members.get(number).map(|it| it.edges.as_slice()).unwrap_or_default();
    edges.iter().filter(|(_, step)| *step == AppliesTo::Same).map(|(target, _)| *target)
}

/// Walks on among some schemas until one comes again, or there is none to go to.
fn walk(graph: &Graph<'_>, start: usize, among: &BTreeSet<usize>) -> Vec<usize> {
    let mut walked = vec![start];
    let mut seen = BTreeSet::from([start]);
    let mut at = start;
    loop {
        let mut next = same(graph, at).filter(|to| among.contains(to));
        // What was walked before first, so that the walk ends in its circle.
        let again = next.clone().find(|to| seen.contains(to));
        let Some(to) = again.or_else(|| next.next()) else { return walked };
        walked.push(to);
        if !seen.insert(to) {
            return walked;
        }
        at = to;
    }
}

/// Says that a walk ends where it was before.
fn circle(graph: &Graph<'_>, walked: &[usize], files: &[SchemaFile]) -> Option<Diagnostic> {
    let (last, before) = walked.split_last()?;
    let from = before.iter().position(|it| it == last)?;
    let around = walked.get(from..)?;
    let mut steps = around.windows(2).filter_map(|pair| {
        let [from, to] = pair else { return None };
        let member = graph.members.get(*from)?;
        let (keyword, _) = member.references.iter().find(|(_, target)| target == to)?;
        Some(member.at.at(keyword))
    });
    let first = steps.next()?;
    let mut found =
        first.invalid(files, "the reference leads back to itself for the same value")?;
    for step in steps {
        if let Some(place) = step.place(files) {
            found = found.with_related(place, "through this one");
        }
    }
    Some(
        found.with_help(
            "a schema may refer to itself for what is inside of a value, not for the value",
        ),
    )
}

/// What looks at the parts of one level of a value.
#[derive(Clone, Copy, Default)]
struct LevelCost {
    /// How often.
    times: u64,
    /// Through how many schemas at most.
    chain: u64,
}

/// What a schema costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct SchemaCosts {
    /// How many levels a value may have.
    pub(super) deepest: usize,
    /// How often schemas look at one part of such a value at most.
    pub(super) looks: u64,
}

/// Returns what a schema costs; `None` if no value is affordable.
pub(super) fn costs(graph: &Graph<'_>, order: &[usize], root: usize) -> Option<SchemaCosts> {
    let mut looks = 1;
    let mut level: HashMap<usize, LevelCost> =
        HashMap::from([(root, LevelCost { times: 1, chain: 1 })]);
    let mut by_depth = LooksByDepth::new(graph, order, root, LOOKS);
    for depth in 0..=Limits::DEFAULT.depth {
        if level.is_empty() {
            break;
        }
        let below = look(graph, order, &mut level);
        let of_level = level.values().fold(0_u64, |all, it| all.saturating_add(it.times));
        // Neither is less than what a value can bring about: one counts schemas of different keys, the other one
        // schema more than once where keys differ.
        let times = by_depth.descend().min(of_level);
        let chain = level.values().map(|it| it.chain).max().unwrap_or_default();
        if times > LOOKS || chain > CHAIN {
            return Some(SchemaCosts { deepest: depth.checked_sub(1)?, looks });
        }
        looks = looks.max(times);
        level = below;
    }
    Some(SchemaCosts { deepest: usize::MAX, looks })
}

/// Completes a level by what its schemas lead to for the same part, and returns the level below.
fn look(
    graph: &Graph<'_>,
    order: &[usize],
    level: &mut HashMap<usize, LevelCost>,
) -> HashMap<usize, LevelCost> {
    let mut any: HashMap<usize, LevelCost> = HashMap::new();
    let mut keys: HashMap<(usize, AppliesTo<'_>), LevelCost> = HashMap::new();
    for number in order {
        let Some(own) = level.get(number).copied() else { continue };
        let Some(member) = graph.members.get(*number) else { continue };
        let times = own.times.saturating_mul(1 + u64::from(member.asks_again));
        let add = |look: &mut LevelCost| {
            look.times = look.times.saturating_add(times);
            look.chain = look.chain.max(own.chain + 1);
        };
        for (target, step) in &member.edges {
            match step {
                AppliesTo::Same => add(level.entry(*target).or_default()),
                AppliesTo::Any => add(any.entry(*target).or_default()),
                AppliesTo::Key(_) | AppliesTo::Index(_) => {
                    add(keys.entry((*target, *step)).or_default());
                }
                AppliesTo::None => {}
            }
        }
    }
    // One part stands at one key.
    let mut largest: HashMap<usize, LevelCost> = HashMap::new();
    for ((target, _), look) in keys {
        let most = largest.entry(target).or_default();
        most.times = most.times.max(look.times);
        most.chain = most.chain.max(look.chain);
    }
    for (target, look) in largest {
        let all = any.entry(target).or_default();
        all.times = all.times.saturating_add(look.times);
        all.chain = all.chain.max(look.chain);
    }
    any
}

/// Says that a schema costs more than it may, whatever the value.
pub(super) fn too_costly(file: &SchemaFile) -> Diagnostic {
    let message = format!(
        "the schema takes too long: it checks one value more than {LOOKS} times, or through more than \
         {CHAIN} schemas"
    );
    invalid(&file.path, file.node.span, message).with_help("refer to the same schema less often")
}
