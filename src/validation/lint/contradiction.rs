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
    // What holds for every node of a group, with the group that demands it.
    let mut known: Vec<BTreeMap<Way, (Arc<str>, GroupIndex)>> = Vec::new();
    for (index, group) in hierarchy.indexes().zip(hierarchy.groups()) {
        let parent = hierarchy.parent(index).and_then(|parent| known.get(parent.number()));
        let mut here = parent.cloned().unwrap_or_default();
        let mut demands = Vec::new();
        group.rule.iter().for_each(|rule| collect(rule, &mut demands));
        for (way, text) in demands {
            let Some((other, by)) = here.get(&way) else {
                here.insert(way, (text, index));
                continue;
            };
            if *other == text {
                continue;
            }
            let Some(place) = places.get(&group.id).and_then(|it| it.rule) else { continue };
            let demander = hierarchy.group(*by);
            let message =
                format!("no node matches: {} cannot be both `{other}` and `{text}`", show(&way));
            let mut found = Diagnostic::new(Kind::NeverMatches, place.clone(), message)
                .in_group(group.name.as_str());
            if *by != index {
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
            break;
        }
        known.push(here);
    }
}

/// The way to a value, whichever name its root has.
type Way = Vec<Segment>;

fn collect(condition: &Condition, demands: &mut Vec<(Way, Arc<str>)>) {
    match condition {
        Condition::And(terms) => terms.iter().for_each(|term| collect(term, demands)),
        Condition::Or(terms) => {
            if let [only] = terms.as_slice() {
                collect(only, demands);
            }
        }
        Condition::Test(Test { path, comparison: Comparison::Equals(text) }) => {
            demands.extend(way(path).map(|way| (way, Arc::clone(text))));
        }
        Condition::Not(_) | Condition::Test(_) => {}
    }
}

fn way(path: &Path) -> Option<Way> {
    match path {
        Path::Name => Some(vec![Segment::Key("name".into())]),
        Path::Bare(_) => None,
        Path::Segments(segments) => {
            let mut way = segments.to_vec();
            if let Some(root) = way.first_mut()
                && *root == Segment::Key("facts".into())
            {
                *root = Segment::Key("fact".into());
            }
            Some(way)
        }
    }
}

fn show(way: &[Segment]) -> String {
    format!("`{}`", Path::Segments(way.into()))
}
