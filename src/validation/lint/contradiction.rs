//! Rules that contradict those of their ancestors.

use std::sync::Arc;

use super::super::places::Places;
use crate::diagnostic::{Diagnostic, Kind};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Comparison, Condition, GroupId, Path, Segment, Test};

/// Finds groups, among one and its descendants, that ask one value to equal two texts, in their own
/// rule or together with an ancestor's: no node is ever in them.
///
/// Only conditions that must hold are looked at: those joined by `and`.
pub(in crate::validation) fn contradictions(
    hierarchy: &Hierarchy,
    top: GroupIndex,
    places: &Places<'_>,
) -> Vec<(GroupIndex, Diagnostic)> {
    let mut found = Vec::new();
    // What a group and its ancestors demand, from the root downwards, and who of them is looked at.
    let mut demands: Vec<Demand<'_>> = Vec::new();
    let mut open: Vec<(GroupIndex, usize)> = Vec::new();
    let mut above: Vec<GroupIndex> = hierarchy.lineage(top).skip(1).collect();
    above.reverse();
    for index in above.into_iter().chain(hierarchy.subtree(top)) {
        while open.last().is_some_and(|(it, _)| !hierarchy.is_ancestor(*it, index)) {
            demands.truncate(open.pop().map_or(0, |(_, start)| start));
        }
        open.push((index, demands.len()));
        let mut own = Vec::new();
        hierarchy.group(index).rule.iter().for_each(|rule| collect(rule, index, &mut own));
        for demand in own {
            // The first that asks for the value stands, from the root downwards.
            let earlier = demands.iter().find(|it| same_way(it.path, demand.path));
            match earlier.filter(|it| it.text != demand.text) {
                None => demands.push(demand),
                Some(earlier) => {
                    if index >= top {
                        let diagnostic = report(hierarchy, *earlier, demand, places);
                        found.extend(diagnostic.map(|it| (index, it)));
                    }
                    // What stands behind it is not looked at.
                    break;
                }
            }
        }
    }
    found
}

fn report(
    hierarchy: &Hierarchy,
    earlier: Demand<'_>,
    demand: Demand<'_>,
    places: &Places<'_>,
) -> Option<Diagnostic> {
    let (group, demander) = (hierarchy.group(demand.by), hierarchy.group(earlier.by));
    let rule = |id: GroupId| places.of(id)?.rule.clone();
    let message = format!(
        "no node matches: {} cannot be both `{}` and `{}`",
        show(demand.path),
        earlier.text,
        demand.text
    );
    let found =
        Diagnostic::new(Kind::NeverMatches, rule(group.id)?, message).in_group(group.name.as_str());
    if earlier.by == demand.by {
        return Some(found);
    }
    let found = found.with_help(format!(
        "a node must match its group's ancestors too: move the group out of `{}`, or change one of the rules",
        demander.name
    ));
    Some(match rule(demander.id) {
        Some(rule) => found.with_related(rule, format!("`{}` demands the other", demander.name)),
        None => found,
    })
}

/// A text that a value must have for a group to match.
#[derive(Clone, Copy)]
struct Demand<'h> {
    path: &'h Path,
    text: &'h Arc<str>,
    by: GroupIndex,
}

fn collect<'h>(condition: &'h Condition, by: GroupIndex, demands: &mut Vec<Demand<'h>>) {
    match condition {
        Condition::And(terms) => terms.iter().for_each(|term| collect(term, by, demands)),
        Condition::Or(terms) => {
            if let [only] = terms.as_slice() {
                collect(only, by, demands);
            }
        }
        Condition::Test(Test { path, comparison: Comparison::Equals(text) }) => {
            if !matches!(path, Path::Bare(_)) {
                demands.push(Demand { path, text, by });
            }
        }
        Condition::Not(_) | Condition::Test(_) => {}
    }
}

/// Returns the root of a path, whichever name it has, and what follows.
fn parts(path: &Path) -> Option<(&str, &[Segment])> {
    match path {
        Path::Name => Some(("name", &[])),
        Path::Bare(_) => None,
        Path::Segments(segments) => match segments.split_first()? {
            (Segment::Key(root), rest) if root.as_ref() == "facts" => Some(("fact", rest)),
            (Segment::Key(root), rest) => Some((root, rest)),
            (Segment::Index(_), _) => None,
        },
    }
}

fn same_way(a: &Path, b: &Path) -> bool {
    parts(a).is_some_and(|a| Some(a) == parts(b))
}

fn show(path: &Path) -> String {
    match parts(path) {
        Some((root, rest)) => {
            let root = Segment::Key(root.into());
            let segments = std::iter::once(root).chain(rest.iter().cloned());
            format!("`{}`", Path::Segments(segments.collect()))
        }
        None => format!("`{path}`"),
    }
}
