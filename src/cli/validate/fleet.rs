//! What the nodes of a fleet say of groups: real conflicts, rules that no node meets, facts that
//! no node has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path as FilePath;

use anyhow::Result;
use rayon::prelude::*;

use crate::classification::{Evidence, Outcome, classify, conflict_summary};
use crate::cli::nodes::{Read, from_directory};
use crate::diagnostic::{Diagnostic, Kind, Severity};
use crate::hierarchy::{Estate, GroupIndex};
use crate::model::{Condition, Node, Path};
use crate::rule::{Actual, actual};
use crate::validation::Checked;

/// How many nodes are named.
const NAMES: usize = 3;

/// What one node tells.
#[derive(Default)]
struct Seen {
    matched: BTreeSet<GroupIndex>,
    /// What is wrong, the group to say it of, and the nodes.
    wrong: BTreeMap<(String, GroupIndex), Vec<String>>,
    /// What the node shows of groups that could conflict.
    evidence: Evidence,
    /// The paths at which no node has had anything so far.
    nowhere: BTreeSet<String>,
}

/// What the nodes of a fleet say.
pub(super) struct Fleet {
    pub(super) read: Read,
    pub(super) found: Vec<Diagnostic>,
    /// What they show of groups that could conflict.
    pub(super) evidence: Evidence,
}

/// Classifies the nodes of a directory of facts.
pub(super) fn check(directory: &FilePath, checked: &Checked) -> Result<Fleet> {
    let mut evidence = Evidence::default();
    let Some(estate) = &checked.estate else {
        // It is unknown what nodes get.
        let read = from_directory(directory, &mut |_| {})?;
        return Ok(Fleet { read, found: Vec::new(), evidence });
    };
    let paths = paths(estate);
    let mut seen = Seen { nowhere: paths.keys().cloned().collect(), ..Seen::default() };
    let read = from_directory(directory, &mut |nodes| {
        let told: Vec<Seen> = nodes.par_iter().map(|node| ask(estate, node)).collect();
        for it in told {
            seen.matched.extend(it.matched);
            evidence.extend(it.evidence);
            for (what, nodes) in it.wrong {
                seen.wrong.entry(what).or_default().extend(nodes);
            }
        }
        seen.nowhere.retain(|text| {
            let path = paths.get(text).map(|(path, _)| path);
            path.is_some_and(|path| {
                nodes.par_iter().all(|node| actual(path, node) == Actual::Missing)
            })
        });
    })?;
    let mut found = Vec::new();
    let at = |index: GroupIndex, kind: Kind, message: String| {
        let group = estate.hierarchy.group(index);
        let place = checked.origins.get(&group.id)?;
        Some(Diagnostic::new(kind, place.clone(), message).in_group(group.name.as_str()))
    };
    for ((what, group), nodes) in &seen.wrong {
        let shown: Vec<String> = nodes.iter().take(NAMES).map(|it| format!("`{it}`")).collect();
        let more = match nodes.len().saturating_sub(NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let message = format!("{}{more}: {what}", shown.join(", "));
        found.extend(at(*group, Kind::PotentialConflict, message).map(|mut it| {
            it.severity = Severity::Error;
            it
        }));
    }
    if read.nodes > 0 {
        for index in estate.hierarchy.indexes() {
            let group = estate.hierarchy.group(index);
            if group.rule.is_some() && !seen.matched.contains(&index) {
                let message =
                    format!("no node of the {} that are known is in this group", read.nodes);
                found.extend(at(index, Kind::NeverMatches, message));
            }
        }
        for text in &seen.nowhere {
            let Some((_, groups)) = paths.get(text) else { continue };
            for group in groups {
                let message = format!("no node of the {} that are known has `{text}`", read.nodes);
                found.extend(at(*group, Kind::SuspiciousValue, message));
            }
        }
    }
    Ok(Fleet { read, found, evidence })
}

fn ask(estate: &Estate, node: &Node) -> Seen {
    let mut seen = Seen::default();
    let name = || vec![node.name.clone()];
    match classify(estate, node) {
        Ok(explanation) => {
            seen.evidence.note(&explanation);
            if let Outcome::Conflict(conflicts) = &explanation.outcome {
                let message = conflict_summary(&estate.hierarchy, conflicts);
                if let Some(group) = conflicts.groups().last() {
                    seen.wrong.insert((message, *group), name());
                }
            }
            seen.matched = explanation.matches.iter().map(|it| it.group).collect();
        }
        Err(error) => {
            if let Some(group) = estate.hierarchy.find(error.group) {
                seen.wrong.insert((format!("{error}: {}", error.cause), group), name());
            }
        }
    }
    seen
}

/// Returns the paths of rules as people write them, with the groups that name each.
fn paths(estate: &Estate) -> BTreeMap<String, (Path, Vec<GroupIndex>)> {
    let mut paths: BTreeMap<String, (Path, Vec<GroupIndex>)> = BTreeMap::new();
    let hierarchy = &estate.hierarchy;
    for index in hierarchy.indexes() {
        let Some(rule) = hierarchy.group(index).rule.as_deref() else { continue };
        let mut note = |path: &Path| {
            if matches!(path, Path::Segments(_)) {
                let entry = paths.entry(path.to_string());
                let (_, groups) = entry.or_insert_with(|| (path.clone(), Vec::new()));
                if groups.last() != Some(&index) {
                    groups.push(index);
                }
            }
        };
        visit(rule, &mut note);
    }
    paths
}

fn visit(condition: &Condition, note: &mut dyn FnMut(&Path)) {
    match condition {
        Condition::And(terms) | Condition::Or(terms) => {
            for term in terms {
                visit(term, note);
            }
        }
        Condition::Not(inner) => visit(inner, note),
        Condition::Test(test) => note(&test.path),
    }
}
