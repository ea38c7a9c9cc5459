//! What tests reach: the groups of their nodes, the rules that decide about them, the values that come out.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use rayon::prelude::*;
use serde_json::Value;

use super::fact_files::FactFiles;
use super::group_value::GroupValue;
use super::verdict::node_of;
use crate::classification::{
    Explanation, LeafRow, Outcome, ValueSource, WithheldFacts, leaves_below,
};
use crate::cli::repository::LoadedRepository;
use crate::diagnostic::Place;
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::mentioned::MentionedPaths;
use crate::model::{Condition, Node};
use crate::snapshot::{Index, classify};
use crate::validation::{TestCase, ValuePlaces, comparison_places};

/// A test that could be run, with its node and the groups that match it, parents first.
pub(super) struct TestRun<'t> {
    pub(super) test: &'t TestCase,
    /// The node with the facts and trusted data that groups mention: those of all tests are in memory.
    pub(super) node: Node,
    pub(super) groups: Vec<GroupIndex>,
}

impl<'t> TestRun<'t> {
    /// Runs a test; `None` if its node cannot be read or classified.
    fn of(
        test: &'t TestCase,
        estate: &Estate,
        index: &Index,
        facts: &FactFiles,
        mentioned: &MentionedPaths,
    ) -> Option<Self> {
        let node = node_of(test, facts).ok()?;
        let explanation = classify(estate, index, &node, WithheldFacts::Refuse).ok()?;
        let groups = explanation.matches.iter().map(|it| it.group).collect();
        Some(Self { test, node: mentioned.keep(&node), groups })
    }

    /// Returns whether the node is in a group.
    pub(super) fn has(&self, group: GroupIndex) -> bool {
        self.groups.binary_search(&group).is_ok()
    }
}

/// The tests that could be run, and which of them concern each group.
pub(super) struct TestRuns<'t> {
    all: Vec<TestRun<'t>>,
    /// The numbers of those whose node is in a group.
    members: HashMap<GroupIndex, Vec<usize>>,
    /// The numbers of those whose node has a leaf that inherits from a group, or is it.
    heirs: HashMap<GroupIndex, Vec<usize>>,
}

impl<'t> TestRuns<'t> {
    /// Runs tests.
    pub(super) fn of(
        tests: &[&'t TestCase],
        estate: &Estate,
        index: &Index,
        facts: &FactFiles,
    ) -> Self {
        let mentioned = MentionedPaths::of(estate);
        let run = |it: &&'t TestCase| TestRun::of(it, estate, index, facts, &mentioned);
        let all: Vec<TestRun<'t>> = tests.par_iter().filter_map(run).collect();
        let (mut members, mut heirs) = (HashMap::new(), HashMap::new());
        for (number, run) in all.iter().enumerate() {
            for group in &run.groups {
                add(&mut members, *group, number);
            }
            for leaf in estate.hierarchy.leaves(&run.groups) {
                // What another leaf inherits from has the number, and so do all above it.
                let mut above = estate.hierarchy.lineage(leaf);
                while above.next().is_some_and(|it| add(&mut heirs, it, number)) {}
            }
        }
        Self { all, members, heirs }
    }

    pub(super) fn all(&self) -> &[TestRun<'t>] {
        &self.all
    }

    /// Returns how many have their node in a group.
    pub(super) fn count_in(&self, group: GroupIndex) -> usize {
        self.members.get(&group).map_or(0, Vec::len)
    }

    /// Returns those whose nodes a group's rule decides about, as [`deciding_ancestor`] says.
    pub(super) fn below(&self, deciding: Option<GroupIndex>) -> Vec<&TestRun<'t>> {
        match deciding {
            None => self.all.iter().collect(),
            Some(group) => self.numbered(self.members.get(&group)),
        }
    }

    /// Returns those whose nodes have leaves that inherit from a group, or are it.
    pub(super) fn inheriting(&self, group: GroupIndex) -> Vec<&TestRun<'t>> {
        self.numbered(self.heirs.get(&group))
    }

    fn numbered(&self, numbers: Option<&Vec<usize>>) -> Vec<&TestRun<'t>> {
        numbers.into_iter().flatten().filter_map(|it| self.all.get(*it)).collect()
    }
}

/// Adds the number of a test to those of a group, and returns whether it was not the last of them.
fn add(of_groups: &mut HashMap<GroupIndex, Vec<usize>>, group: GroupIndex, number: usize) -> bool {
    let numbers = of_groups.entry(group).or_default();
    let is_new = numbers.last() != Some(&number);
    if is_new {
        numbers.push(number);
    }
    is_new
}

/// Returns the ancestor of which a node must be a member for the rule of a group to decide about it: one
/// that matches says that all above it do. `None` if the rule decides about every node.
pub(super) fn deciding_ancestor(hierarchy: &Hierarchy, group: GroupIndex) -> Option<GroupIndex> {
    hierarchy.lineage(group).skip(1).find(|it| hierarchy.group(*it).rule.is_some())
}

/// Returns the values of groups that come out, each with the group that sets it; in a conflict, those of
/// each leaf. A null comes out where nothing does.
pub(super) fn values_of<'e>(explanation: &Explanation<'e>) -> Vec<(GroupIndex, GroupValue<'e>)> {
    let mut found = Vec::new();
    match &explanation.outcome {
        Outcome::Classified(result) => {
            let groups = |sources: &BTreeSet<ValueSource>| -> Vec<GroupIndex> {
                let group = |it: &ValueSource| match it {
                    ValueSource::Group(group) => Some(*group),
                    ValueSource::Node => None,
                };
                sources.iter().filter_map(group).collect()
            };
            for (class, it) in &result.classes {
                let of = |by| (by, GroupValue::Class(class));
                found.extend(groups(&it.sources).into_iter().map(of));
                for (key, it) in &it.parameters {
                    let of = |by| (by, GroupValue::Parameter(class, key));
                    found.extend(groups(&it.sources).into_iter().map(of));
                }
            }
            for (name, it) in &result.variables {
                let of = |by| (by, GroupValue::Variable(name));
                found.extend(groups(&it.sources).into_iter().map(of));
            }
            for (class, it) in &result.config_data {
                for (key, it) in &it.parameters {
                    let of = |by| (by, GroupValue::ConfigData(class, key));
                    found.extend(groups(&it.sources).into_iter().map(of));
                }
            }
        }
        Outcome::Conflict(_) => {
            let values = &explanation.values;
            for (class, it) in &values.classes {
                found.extend(it.sources.iter().map(|by| (*by, GroupValue::Class(class))));
                for (key, rows) in &it.parameters {
                    let of =
                        |row: &LeafRow<'_>| (row.defined_by, GroupValue::Parameter(class, key));
                    found.extend(rows.iter().map(of));
                }
            }
            for (name, rows) in &values.variables {
                let of = |row: &LeafRow<'_>| (row.defined_by, GroupValue::Variable(name));
                found.extend(rows.iter().map(of));
            }
            for (class, it) in &values.config_data {
                for (key, rows) in &it.parameters {
                    let of =
                        |row: &LeafRow<'_>| (row.defined_by, GroupValue::ConfigData(class, key));
                    found.extend(rows.iter().map(of));
                }
            }
        }
    }
    nulls(explanation, &mut found);
    found.sort_unstable();
    found.dedup();
    found
}

/// Adds the nulls that remove what leaves would inherit.
fn nulls<'e>(explanation: &Explanation<'e>, found: &mut Vec<(GroupIndex, GroupValue<'e>)>) {
    let hierarchy = &explanation.estate.hierarchy;
    for by in hierarchy.lineages(&explanation.leaves) {
        let below = leaves_below(hierarchy, &explanation.leaves, by);
        let removes = |(it, value): &(GroupValue<'e>, Option<&'e Value>)| {
            value.is_some_and(Value::is_null)
                && !it.all_have(&explanation.values, &below)
                && inherits(hierarchy, by, it)
        };
        let written = GroupValue::of(hierarchy.group(by));
        found.extend(written.filter(removes).map(|(it, _)| (by, it)));
    }
}

/// Returns whether a group would inherit a value if it did not set it.
fn inherits(hierarchy: &Hierarchy, group: GroupIndex, value: &GroupValue<'_>) -> bool {
    let set = hierarchy.lineage(group).skip(1).find_map(|above| {
        let mut written = GroupValue::of(hierarchy.group(above));
        written.find(|(it, _)| it == value).and_then(|(_, it)| it)
    });
    set.is_some_and(|it| !it.is_null())
}

/// The comparisons of a rule, in order: those of the rule proper, then the pinned nodes.
pub(super) fn comparisons(rule: &Condition) -> Vec<&Condition> {
    let (mut found, mut rest) = (Vec::new(), vec![rule]);
    while let Some(condition) = rest.pop() {
        match condition {
            Condition::And(terms) | Condition::Or(terms) => rest.extend(terms.iter().rev()),
            Condition::Not(inner) => rest.push(inner),
            Condition::Test(_) => found.push(condition),
        }
    }
    found
}

/// Where groups, their comparisons and values are written.
pub(super) struct RepositoryPlaces<'l> {
    loaded: &'l LoadedRepository,
    /// The comparisons of rules by the place of the group.
    comparisons: HashMap<Place, Vec<Place>>,
}

impl<'l> RepositoryPlaces<'l> {
    pub(super) fn of(loaded: &'l LoadedRepository, hierarchy: &Hierarchy) -> Self {
        let origins = &loaded.checked.origins;
        let files: HashSet<Arc<str>> = hierarchy
            .groups()
            .filter_map(|it| Some(Arc::clone(&origins.get(&it.id)?.file)))
            .collect();
        let texts = loaded.texts().filter(|(path, _)| files.contains(*path));
        let comparisons = texts.flat_map(|(path, text)| comparison_places(path, text)).collect();
        Self { loaded, comparisons }
    }

    /// Returns where a group is written; the root group need not be.
    pub(super) fn group(&self, hierarchy: &Hierarchy, group: GroupIndex) -> Option<Place> {
        self.loaded.checked.origins.get(&hierarchy.group(group).id).cloned()
    }

    /// Returns where the comparisons of a group's rule are written, in order.
    pub(super) fn comparisons(&self, hierarchy: &Hierarchy, group: GroupIndex) -> Vec<Place> {
        let group = hierarchy.group(group);
        let Some(rule) = group.rule.as_deref() else { return Vec::new() };
        let Some(written) = self.loaded.checked.group_file(group.id) else { return Vec::new() };
        let own = self.comparisons.get(&written.place()).cloned().unwrap_or_default();
        let fallback = written.rule_place().unwrap_or_else(|| written.place());
        let mut places: Vec<Place> = own.into_iter().chain(written.pin_places()).collect();
        // Pins can be written as a rule; whatever has no place of its own has that of the rule.
        places.resize(comparisons(rule).len(), fallback);
        places
    }

    /// Returns where the values of a group are written.
    pub(super) fn values(
        &self,
        hierarchy: &Hierarchy,
        group: GroupIndex,
    ) -> Option<ValuePlaces<'l>> {
        self.loaded.checked.group_file(hierarchy.group(group).id)?.value_places()
    }
}
