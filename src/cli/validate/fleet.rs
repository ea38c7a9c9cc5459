//! What the nodes of a fleet show of groups: real conflicts, rules that no node meets, facts that no
//! node has.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use jiff::Timestamp;
use rayon::prelude::*;

use super::pins::Pins;
use crate::classification::{Evidence, Outcome, WithheldFacts, conclude, conflict_summary};
use crate::cli::nodes::{NodesArgs, ReadNodes};
use crate::cli::output::Output;
use crate::diagnostic::{Diagnostic, Kind, Severity};
use crate::hierarchy::{Estate, GroupIndex};
use crate::mentioned::MentionedPaths;
use crate::model::{Condition, Node, Path};
use crate::rule::{Actual, actual};
use crate::snapshot::Index;
use crate::validation::Checked;
use crate::wording::listed;

/// How many nodes a message names.
const NAMES: usize = 3;

/// The paths of rules as people write them, with the groups that name each.
type RulePaths = BTreeMap<String, (Path, Vec<GroupIndex>)>;

/// How many nodes are classified before what they show is put together: of one it may be ten thousand conflicts.
const AT_ONCE: usize = 64;

/// What nodes show of the groups of an estate.
#[derive(Default)]
struct Observations {
    matched: BTreeSet<GroupIndex>,
    /// How many nodes may be in other groups as well: a rule cannot be evaluated for them.
    unmatchable: usize,
    /// The names of nodes by what is wrong with them, and the group that it is reported of.
    faults: BTreeMap<(String, GroupIndex), Vec<String>>,
    /// What the nodes show of groups that could conflict.
    evidence: Evidence,
    /// The paths at which no node has had a value so far.
    missing: BTreeSet<String>,
}

/// The nodes of a fleet, and what they show.
#[derive(Default)]
pub(super) struct Fleet {
    pub(super) read: ReadNodes,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// What they show of groups that could conflict.
    pub(super) evidence: Evidence,
}

/// Classifies the nodes of a fleet.
pub(super) fn check(
    nodes: &NodesArgs,
    checked: &Checked,
    now: Timestamp,
    output: &mut Output,
) -> Result<Fleet> {
    let Some(estate) = &checked.estate else {
        // Without an estate no node can be classified.
        let read = nodes.read(&MentionedPaths::default(), &mut |_| {}, output)?;
        return Ok(Fleet { read, ..Fleet::default() });
    };
    let paths = paths(estate);
    let missing = paths.keys().cloned().collect();
    let mut observations = Observations { missing, ..Observations::default() };
    let index = Index::new(&estate.hierarchy);
    let mut pins = Pins::of(estate);
    let read = nodes.read_noting(
        &MentionedPaths::of(estate),
        &mut |name, seen| pins.note(name, seen),
        &mut |nodes| observations.add(nodes, (estate, &index), &paths),
        output,
    )?;
    let mut diagnostics = observations.faults(estate, checked);
    if read.nodes > 0 {
        let policy = checked.layout().policy.groups;
        if let Some(severity) = policy.stale_pins.severity() {
            // A node that cannot be read may be one that is pinned.
            if read.unreadable.is_empty() {
                diagnostics.extend(pins.stale(checked, severity, policy.stale_pin_days, now));
            } else {
                output.note("note: not checked: `stale_pins`, since some nodes cannot be read");
            }
        }
        let unmatched = observations.unmatched(estate, checked, read.nodes);
        if unmatched.is_empty() || (observations.matches_all() && read.unreadable.is_empty()) {
            diagnostics.extend(unmatched);
        } else {
            output.note(
                "note: not checked: which groups no node is in, since some nodes cannot be read or classified",
            );
        }
        let missing = observations.missing_facts(estate, checked, &paths, read.nodes);
        if missing.is_empty() || read.unreadable.is_empty() {
            diagnostics.extend(missing);
        } else {
            output.note(
                "note: not checked: which facts no node has, since some nodes cannot be read",
            );
        }
    }
    Ok(Fleet { read, diagnostics, evidence: observations.evidence })
}

impl Observations {
    /// Returns what one node shows, beside what others showed of conflicts.
    fn of((estate, index): (&Estate, &Index), node: &Node, known: &Evidence) -> Self {
        let mut observations = Self::default();
        let name = || vec![node.name.clone()];
        let hierarchy = &estate.hierarchy;
        let groups = index.matching(hierarchy, node);
        match &groups {
            Ok(groups) => observations.matched = groups.iter().copied().collect(),
            Err(_) => observations.unmatchable = 1,
        }
        let concluded =
            groups.and_then(|groups| conclude(estate, node, &groups, WithheldFacts::Mark));
        match concluded {
            Ok(explanation) => {
                observations.evidence = known.shown_by(&explanation);
                if let Outcome::Conflict(conflicts) = &explanation.outcome {
                    let message = conflict_summary(hierarchy, conflicts);
                    if let Some(group) = conflicts.groups().last() {
                        observations.faults.insert((message, *group), name());
                    }
                }
            }
            Err(error) => {
                if let Some(group) = hierarchy.find(error.group) {
                    let message = format!("{error}: {}", error.cause);
                    observations.faults.insert((message, group), name());
                }
            }
        }
        observations
    }

    /// Adds what some nodes show.
    fn add(&mut self, nodes: &[Node], indexed: (&Estate, &Index), paths: &RulePaths) {
        for few in nodes.chunks(AT_ONCE) {
            let known = &self.evidence;
            let each: Vec<Self> =
                few.par_iter().map(|node| Self::of(indexed, node, known)).collect();
            for it in each {
                self.matched.extend(it.matched);
                self.unmatchable += it.unmatchable;
                self.evidence.extend(it.evidence);
                for (fault, nodes) in it.faults {
                    self.faults.entry(fault).or_default().extend(nodes);
                }
            }
        }
        let lacks =
            |path: &Path| nodes.par_iter().all(|it| actual(path, it) == Ok(Actual::Missing));
        self.missing.retain(|text| paths.get(text).is_some_and(|(path, _)| lacks(path)));
    }

    /// Returns whether it is known of each node which groups it is in.
    fn matches_all(&self) -> bool {
        self.unmatchable == 0
    }

    /// Reports the nodes that have no classification.
    fn faults(&self, estate: &Estate, checked: &Checked) -> Vec<Diagnostic> {
        let report = |((fault, group), nodes): (&(String, GroupIndex), &Vec<String>)| {
            let names = listed(nodes.iter().map(|it| format!("`{it}`")), NAMES);
            let message = format!("{names}: {fault}");
            let mut found = diagnostic(estate, checked, *group, Kind::PotentialConflict, message)?;
            found.severity = Severity::Error;
            Some(found)
        };
        self.faults.iter().filter_map(report).collect()
    }

    /// Reports the groups with a rule that no node of so many meets.
    fn unmatched(&self, estate: &Estate, checked: &Checked, nodes: usize) -> Vec<Diagnostic> {
        let hierarchy = &estate.hierarchy;
        let groups = hierarchy
            .indexes()
            .filter(|it| hierarchy.group(*it).rule.is_some() && !self.matched.contains(it));
        let policy = checked.layout().policy.groups.unmatched_groups.severity();
        let report = |group| {
            let message = format!("no node of the {nodes} that are known is in this group");
            let kind = policy.map_or(Kind::NeverMatches, |_| Kind::UnmatchedGroup);
            let mut found = diagnostic(estate, checked, group, kind, message)?;
            found.severity = policy.unwrap_or(found.severity);
            Some(found)
        };
        groups.filter_map(report).collect()
    }

    /// Reports the groups whose rules name facts that no node of so many has.
    fn missing_facts(
        &self,
        estate: &Estate,
        checked: &Checked,
        paths: &RulePaths,
        nodes: usize,
    ) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        for text in &self.missing {
            let groups = paths.get(text).map(|(_, groups)| groups.as_slice());
            for group in groups.unwrap_or_default() {
                let message = format!("no node of the {nodes} that are known has `{text}`");
                let kind = Kind::SuspiciousValue;
                diagnostics.extend(diagnostic(estate, checked, *group, kind, message));
            }
        }
        diagnostics
    }
}

/// Returns a diagnostic at the place of a group.
fn diagnostic(
    estate: &Estate,
    checked: &Checked,
    group: GroupIndex,
    kind: Kind,
    message: String,
) -> Option<Diagnostic> {
    let group = estate.hierarchy.group(group);
    let place = checked.origins.get(&group.id)?;
    Some(Diagnostic::new(kind, place.clone(), message).in_group(group.name.as_str()))
}

/// Returns the paths that the rules of an estate name.
fn paths(estate: &Estate) -> RulePaths {
    let mut paths = RulePaths::new();
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
