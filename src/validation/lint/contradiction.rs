//! Rules that contradict those of their ancestors.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::tree::GroupPlaces;
use crate::diagnostic::{Diagnostic, Kind};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Comparison, Condition, GroupId, Path, Segment, Test};

/// Finds groups that ask one value to equal two texts, in their own rule or together with an
/// ancestor's: no node is ever in them.
///
/// Only conditions that must hold are looked at: those joined by `and`.
pub(in crate::validation) fn contradictions(
    hierarchy: &Hierarchy,
    places: &BTreeMap<GroupId, GroupPlaces<'_>>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    // What groups demand, one group after the other.
    let mut demands: Vec<Demand<'_>> = Vec::new();
    let mut ends: Vec<usize> = Vec::with_capacity(hierarchy.len());
    let mut lineage: Vec<GroupIndex> = Vec::new();
    for (index, group) in hierarchy.indexes().zip(hierarchy.groups()) {
        let start = demands.len();
        group.rule.iter().for_each(|rule| collect(rule, index, &mut demands));
        lineage.clear();
        if demands.len() > start {
            lineage.extend(hierarchy.lineage(index).skip(1));
        }
        let of = |group: GroupIndex| {
            let before = group.number().checked_sub(1).and_then(|it| ends.get(it)).copied();
            before.unwrap_or(0)..ends.get(group.number()).copied().unwrap_or(0)
        };
        let mut at = start;
        while let Some(demand) = demands.get(at).copied() {
            at += 1;
            // The first that asks for the value stands, from the root downwards.
            let above =
                lineage.iter().rev().flat_map(|it| demands.get(of(*it)).unwrap_or_default());
            let own = demands.get(start..at - 1).unwrap_or_default();
            let earlier = above.chain(own).find(|it| same_way(it.path, demand.path)).copied();
            let Some(earlier) = earlier.filter(|it| it.text != demand.text) else { continue };
            let (other, by, text) = (earlier.text, earlier.by, demand.text);
            let Some(place) = places.get(&group.id).and_then(|it| it.rule) else { continue };
            let demander = hierarchy.group(by);
            let message = format!(
                "no node matches: {} cannot be both `{other}` and `{text}`",
                show(demand.path)
            );
            let mut found = Diagnostic::new(Kind::NeverMatches, place.clone(), message)
                .in_group(group.name.as_str());
            if by != index {
                found = found.with_help(format!(
                    "a node must match its group's ancestors too: move the group out of `{}`, or change one of the rules",
                    demander.name
                ));
                if let Some(rule) = places.get(&demander.id).and_then(|it| it.rule) {
                    found = found.with_related(
                        rule.clone(),
                        format!("`{}` demands the other", demander.name),
                    );
                }
            }
            diagnostics.push(found);
            // What stands behind it is not looked at.
            demands.truncate(at - 1);
        }
        ends.push(demands.len());
    }
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
