//! What one node gets differently.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use super::Side;
use super::groups::{GroupChange, How, group_changes};
use crate::classification::{Explanation, Final, Outcome, Source, SourcedValue, conflict_message};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{GroupId, Node, same};
use crate::rule::evaluate;
use crate::snapshot::{Index, classify};

/// Two states, prepared for comparing nodes.
#[derive(Debug)]
pub struct Comparison<'a> {
    base: Side<'a>,
    head: Side<'a>,
    /// Finds the groups that match, of either state.
    indexes: [Index; 2],
    changes: Vec<GroupChange>,
    /// Where each changed group stands among the changes, by its old and new id.
    by_id: HashMap<GroupId, usize>,
    /// The new id of each renamed group.
    renamed: BTreeMap<GroupId, GroupId>,
    /// The groups to look at first in either state: a node that none of them matches gets the same.
    watched: [Vec<GroupIndex>; 2],
}

/// A group by id and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupName {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: GroupId,
}

/// What one node gets differently.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeChange {
    /// The changes, in the order in which people are shown them.
    pub changes: Vec<Change>,
}

/// One thing that differs, with the changes of groups that cause it, as their numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What differs.
    pub what: Difference,
    /// Which group changes cause it.
    pub causes: Vec<usize>,
}

/// What differs.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// The node is in a group that it was not in.
    Entered(GroupName),
    /// The node is not in a group any more.
    Left(GroupName),
    /// The group has another name, or another id with it.
    Renamed {
        /// What it was.
        from: GroupName,
        /// What it is.
        to: GroupName,
    },
    /// A conflict appears, disappears or is another one.
    Conflict(ConflictChange),
    /// Another environment.
    Environment {
        /// What it was.
        old: String,
        /// What it is.
        new: String,
    },
    /// A class that the node did not have.
    ClassAdded(String),
    /// A class that the node does not have any more.
    ClassRemoved(String),
    /// A value.
    Value(ValueChange),
}

/// A conflict, or why a node could not be classified, on either side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictChange {
    /// What was wrong.
    pub old: Option<String>,
    /// What is wrong.
    pub new: Option<String>,
}

/// A parameter, variable or item of config data.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueChange {
    /// What it is.
    pub kind: ValueKind,
    /// The class, except for variables.
    pub class: Option<String>,
    /// The name of parameter, variable or key.
    pub name: String,
    /// What it was; none if it was not set.
    pub old: Option<Value>,
    /// What it is; none if it is not set.
    pub new: Option<Value>,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueKind {
    /// A parameter of a class.
    Parameter,
    /// A top-scope variable.
    Variable,
    /// An item of config data.
    ConfigData,
}

impl<'a> Comparison<'a> {
    /// Prepares to compare two states.
    pub fn new(base: Side<'a>, head: Side<'a>) -> Self {
        let changes = group_changes(base, head);
        let mut by_id = HashMap::new();
        let mut renamed = BTreeMap::new();
        for (index, change) in changes.iter().enumerate() {
            by_id.insert(change.id, index);
            if let How::Renamed { from, .. } = &change.how {
                by_id.insert(*from, index);
                renamed.insert(*from, change.id);
            }
        }
        let watched = [base, head].map(|side| {
            let hierarchy = &side.estate.hierarchy;
            let changed = by_id.keys().filter_map(|id| hierarchy.find(*id));
            let mut groups: Vec<GroupIndex> =
                changed.flat_map(|index| frontier(hierarchy, index)).collect();
            groups.sort_unstable();
            groups.dedup();
            outermost(hierarchy, &groups)
        });
        let indexes = [base, head].map(|side| Index::new(&side.estate.hierarchy));
        Self { base, head, indexes, changes, by_id, renamed, watched }
    }

    /// Returns the groups that differ.
    pub fn groups(&self) -> &[GroupChange] {
        &self.changes
    }

    /// Compares what a node gets; none if it is the same.
    pub fn node(&self, node: &Node) -> Option<NodeChange> {
        if !self.may_differ(node) {
            return None;
        }
        let [old, new] = &self.indexes;
        let old = classify(self.base.estate, old, node);
        let new = classify(self.head.estate, new, node);
        let mut found = Found { comparison: self, changes: Vec::new(), nearby: Vec::new() };
        match (&old, &new) {
            (Ok(old), Ok(new)) => found.compare(old, new),
            (old, new) => {
                let error = |side: &Result<Explanation<'_>, _>| {
                    side.as_ref().err().map(|it: &crate::classification::ClassificationError| {
                        format!("{it}: {}", it.cause)
                    })
                };
                let (old, new) = (error(old), error(new));
                if old != new {
                    let conflict = ConflictChange { old, new };
                    let everything = (0..self.changes.len()).collect();
                    found.push(Difference::Conflict(conflict), everything);
                }
            }
        }
        (!found.changes.is_empty()).then_some(NodeChange { changes: found.changes })
    }

    /// Returns whether a changed group, or what is set for the node alone, has a part in either
    /// classification.
    fn may_differ(&self, node: &Node) -> bool {
        let own = |side: Side<'a>| side.estate.individuals.get(&node.name);
        if own(self.base) != own(self.head) {
            return true;
        }
        let [old, new] = &self.watched;
        [(self.base, old), (self.head, new)].into_iter().any(|(side, groups)| {
            groups.iter().any(|group| may_match(&side.estate.hierarchy, *group, node))
        })
    }

    fn name(side: Side<'_>, index: GroupIndex) -> GroupName {
        let group = side.estate.hierarchy.group(index);
        GroupName { name: group.name.to_string(), id: group.id }
    }
}

/// Returns the groups to ask in the place of one: a group without a rule has no say itself, and its
/// descendants do not ask it.
fn frontier(hierarchy: &Hierarchy, index: GroupIndex) -> Vec<GroupIndex> {
    if hierarchy.group(index).rule.is_some() {
        return vec![index];
    }
    hierarchy.children(index).flat_map(|child| frontier(hierarchy, child)).collect()
}

/// Drops groups below others: they match only what those match.
fn outermost(hierarchy: &Hierarchy, sorted: &[GroupIndex]) -> Vec<GroupIndex> {
    let mut kept: Vec<GroupIndex> = Vec::new();
    for index in sorted {
        if !kept.last().is_some_and(|last| hierarchy.is_ancestor(*last, *index)) {
            kept.push(*index);
        }
    }
    kept
}

/// Returns whether a node is in a group, or nobody can tell.
fn may_match(hierarchy: &Hierarchy, group: GroupIndex, node: &Node) -> bool {
    hierarchy.lineage(group).all(|index| match &hierarchy.group(index).rule {
        None => true,
        Some(rule) => evaluate(rule, node).unwrap_or(true),
    })
}

/// The differences of one node, as they are found.
struct Found<'c, 'a> {
    comparison: &'c Comparison<'a>,
    changes: Vec<Change>,
    /// The changes of leaves and their ancestors, on either side.
    nearby: Vec<usize>,
}

impl Found<'_, '_> {
    fn push(&mut self, what: Difference, mut causes: Vec<usize>) {
        if causes.is_empty() {
            // A leaf came or went, and with it what it hid, inherited or contradicted.
            causes.extend(self.changes.iter().flat_map(|it| it.causes.iter().copied()));
        }
        if causes.is_empty() {
            // A group on the way from a leaf to the value removes it, or does so no more.
            causes.extend(&self.nearby);
        }
        causes.sort_unstable();
        causes.dedup();
        self.changes.push(Change { what, causes });
    }

    fn compare(&mut self, old: &Explanation<'_>, new: &Explanation<'_>) {
        for explanation in [old, new] {
            for leaf in &explanation.leaves {
                let causes = self.causes_above(&explanation.estate.hierarchy, *leaf);
                self.nearby.extend(causes);
            }
        }
        self.compare_groups(old, new);
        match (&old.outcome, &new.outcome) {
            (Outcome::Classified(before), Outcome::Classified(after)) => {
                self.compare_values(before, after);
            }
            (before, after) => {
                let say = |outcome: &Outcome<'_>, hierarchy: &Hierarchy| match outcome {
                    Outcome::Classified(_) => None,
                    Outcome::Conflict(conflicts) => {
                        let message = conflict_message(hierarchy, conflicts);
                        let end = " See the `details` key for all conflicts.";
                        Some(message.strip_suffix(end).unwrap_or(&message).to_owned())
                    }
                };
                let conflict = ConflictChange {
                    old: say(before, &old.estate.hierarchy),
                    new: say(after, &new.estate.hierarchy),
                };
                if conflict.old != conflict.new {
                    let of = |outcome: &Outcome<'_>, hierarchy: &Hierarchy| match outcome {
                        Outcome::Classified(_) => Vec::new(),
                        Outcome::Conflict(conflicts) => conflicts
                            .groups()
                            .into_iter()
                            .flat_map(|it| self.causes_above(hierarchy, it))
                            .collect(),
                    };
                    let mut causes = of(before, &old.estate.hierarchy);
                    causes.extend(of(after, &new.estate.hierarchy));
                    self.push(Difference::Conflict(conflict), causes);
                }
            }
        }
    }

    fn compare_groups(&mut self, old: &Explanation<'_>, new: &Explanation<'_>) {
        let comparison = self.comparison;
        let members =
            |explanation: &Explanation<'_>, side| -> BTreeMap<GroupId, (GroupName, GroupIndex)> {
                let all = explanation.matches.iter();
                all.map(|it| {
                    let name = Comparison::name(side, it.group);
                    (name.id, (name, it.group))
                })
                .collect()
            };
        let (before, after) = (members(old, comparison.base), members(new, comparison.head));
        let now = |id: &GroupId| comparison.renamed.get(id).copied().unwrap_or(*id);
        let mut entered: BTreeMap<GroupId, (GroupName, GroupIndex)> = after.clone();
        let mut left = Vec::new();
        for (id, (name, index)) in &before {
            match entered.remove(&now(id)) {
                Some((to, _)) if to != *name => {
                    let causes = comparison.by_id.get(id).copied().into_iter().collect();
                    self.push(Difference::Renamed { from: name.clone(), to }, causes);
                }
                Some(_) => {}
                None => left.push((name.clone(), *index)),
            }
        }
        for (name, index) in entered.into_values() {
            let causes = self.moving_causes(&comparison.head.estate.hierarchy, index);
            self.push(Difference::Entered(name), causes);
        }
        for (name, index) in left {
            let mut causes = self.moving_causes(&comparison.base.estate.hierarchy, index);
            // Where it stands now may be what moved the node out.
            if let Some(index) = comparison.head.estate.hierarchy.find(now(&name.id)) {
                causes.extend(self.moving_causes(&comparison.head.estate.hierarchy, index));
            }
            self.push(Difference::Left(name), causes);
        }
    }

    /// Returns the changes, of a group and its ancestors, that can move nodes.
    fn moving_causes(&self, hierarchy: &Hierarchy, index: GroupIndex) -> Vec<usize> {
        let moves =
            |it: &usize| self.comparison.changes.get(*it).is_some_and(|it| it.how.moves_nodes());
        self.causes_above(hierarchy, index).into_iter().filter(moves).collect()
    }

    fn causes_above(&self, hierarchy: &Hierarchy, index: GroupIndex) -> Vec<usize> {
        let of = |index| self.comparison.by_id.get(&hierarchy.group(index).id).copied();
        hierarchy.lineage(index).filter_map(of).collect()
    }

    fn compare_values(&mut self, old: &Final<'_>, new: &Final<'_>) {
        if old.environment != new.environment {
            let causes = self.sources(&old.environment_sources, &new.environment_sources);
            let (old, new) = (old.environment.to_string(), new.environment.to_string());
            self.push(Difference::Environment { old, new }, causes);
        }
        for (class, it) in &new.classes {
            if !old.classes.contains_key(class) {
                let causes = self.sources(&BTreeSet::new(), &it.sources);
                self.push(Difference::ClassAdded(class.to_string()), causes);
            }
        }
        for (class, it) in &old.classes {
            if !new.classes.contains_key(class) {
                let causes = self.sources(&it.sources, &BTreeSet::new());
                self.push(Difference::ClassRemoved(class.to_string()), causes);
            }
        }
        for (kind, before, after) in [
            (ValueKind::Parameter, &old.classes, &new.classes),
            (ValueKind::ConfigData, &old.config_data, &new.config_data),
        ] {
            let classes: BTreeSet<_> = before.keys().chain(after.keys()).copied().collect();
            for class in classes {
                let none = BTreeMap::new();
                let of = |side: &BTreeMap<_, _>| {
                    side.get(class)
                        .map(|it: &crate::classification::ClassSources<'_>| it.parameters.clone())
                };
                let (a, b) = (of(before).unwrap_or(none.clone()), of(after).unwrap_or(none));
                self.compare_tables(kind, Some(class.as_str()), &a, &b);
            }
        }
        self.compare_tables(ValueKind::Variable, None, &old.variables, &new.variables);
    }

    fn compare_tables<K: Ord + ToString>(
        &mut self,
        kind: ValueKind,
        class: Option<&str>,
        old: &BTreeMap<&K, SourcedValue<'_>>,
        new: &BTreeMap<&K, SourcedValue<'_>>,
    ) {
        let names: BTreeSet<&K> = old.keys().chain(new.keys()).copied().collect();
        for name in names {
            let (before, after) = (old.get(name), new.get(name));
            let equal = match (before, after) {
                (Some(a), Some(b)) => same(a.value, b.value),
                (a, b) => a.is_none() && b.is_none(),
            };
            if equal {
                continue;
            }
            let none = BTreeSet::new();
            let causes = self.sources(
                before.map_or(&none, |it| &it.sources),
                after.map_or(&none, |it| &it.sources),
            );
            let change = ValueChange {
                kind,
                class: class.map(str::to_owned),
                name: name.to_string(),
                old: before.map(|it| it.value.clone()),
                new: after.map(|it| it.value.clone()),
            };
            self.push(Difference::Value(change), causes);
        }
    }

    /// Returns the changes of the groups that define a value on either side, and of their ancestors.
    fn sources(&self, old: &BTreeSet<Source>, new: &BTreeSet<Source>) -> Vec<usize> {
        let comparison = self.comparison;
        let mut causes = Vec::new();
        for (side, sources) in [(comparison.base, old), (comparison.head, new)] {
            for source in sources {
                if let Source::Group(index) = source {
                    causes.extend(self.causes_above(&side.estate.hierarchy, *index));
                }
            }
        }
        causes
    }
}
