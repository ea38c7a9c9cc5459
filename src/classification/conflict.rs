//! Where leaves differ.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::deciding::Deciding;
use super::leaf_values::{LeafClass, LeafRow, LeafRows, LeafValues};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{ClassName, EnvironmentName, Key, VariableName, same};

/// One leaf's share in a conflict.
#[derive(Clone, Debug, PartialEq)]
pub struct ConflictShare<'e> {
    /// The leaf's value.
    pub value: Cow<'e, Value>,
    /// The leaf.
    pub from: GroupIndex,
    /// The group that sets the value: the leaf, or the nearest ancestor that does.
    pub defined_by: GroupIndex,
}

/// The leaves that have a value in which they differ.
#[derive(Clone, Debug, PartialEq)]
pub struct ConflictingLeaves<'e> {
    leaves: Arc<[GroupIndex]>,
    rows: LeafRows<'e>,
}

impl<'e> ConflictingLeaves<'e> {
    /// Returns the shares of the leaves in order: as many as leaves, of which a conflict in many values has many each time.
    pub fn shares(&self) -> impl Iterator<Item = ConflictShare<'e>> {
        self.rows().flat_map(|(row, leaves)| leaves.iter().map(|leaf| share(row, *leaf)))
    }

    /// Returns all leaves of the node, with those that do not have the value.
    pub fn all(&self) -> &[GroupIndex] {
        &self.leaves
    }

    /// Returns how many leaves have the value.
    pub fn count(&self) -> usize {
        self.rows.iter().map(|row| row.leaves.len()).sum()
    }

    /// Returns the share of a leaf, if it has the value.
    pub fn of(&self, leaf: GroupIndex) -> Option<ConflictShare<'e>> {
        let place = self.leaves.binary_search(&leaf).ok()?;
        let row = self.rows.get(self.rows.partition_point(|row| row.leaves.end <= place))?;
        row.leaves.contains(&place).then(|| share(row, leaf))
    }

    /// Returns the rows of leaves that have one value of one group.
    pub fn rows(&self) -> impl Iterator<Item = (&LeafRow<'e>, &[GroupIndex])> {
        let leaves = |row: &LeafRow<'_>| self.leaves.get(row.leaves.clone()).unwrap_or_default();
        self.rows.iter().map(move |row| (row, leaves(row)))
    }
}

fn share<'e>(row: &LeafRow<'e>, from: GroupIndex) -> ConflictShare<'e> {
    ConflictShare { value: Cow::Borrowed(row.value), from, defined_by: row.defined_by }
}

/// The differences of class parameters or config data.
pub type ClassDifferences<'e> = BTreeMap<&'e ClassName, BTreeMap<&'e Key, ConflictingLeaves<'e>>>;

/// Everything in which the leaves of a node differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conflicts<'e> {
    /// The environments that differ; empty if they do not.
    pub environment: Vec<ConflictShare<'e>>,
    /// Variables.
    pub variables: BTreeMap<&'e VariableName, ConflictingLeaves<'e>>,
    /// Class parameters.
    pub classes: ClassDifferences<'e>,
    /// Config data.
    pub config_data: ClassDifferences<'e>,
}

impl Conflicts<'_> {
    /// Returns whether there is no conflict.
    pub fn is_empty(&self) -> bool {
        self.environment.is_empty()
            && self.variables.is_empty()
            && self.classes.is_empty()
            && self.config_data.is_empty()
    }

    /// Returns the leaves that take part in a conflict, each once.
    pub fn groups(&self) -> Vec<GroupIndex> {
        let classes = self.classes.values().chain(self.config_data.values());
        let values = classes.flat_map(BTreeMap::values).chain(self.variables.values());
        // As leaves stand in a row, those of many values are few rows.
        let mut rows: Vec<&[GroupIndex]> =
            values.flat_map(ConflictingLeaves::rows).map(|(_, leaves)| leaves).collect();
        rows.sort_unstable_by_key(|row| (row.first().copied(), row.last().copied()));
        let mut groups: Vec<GroupIndex> = self.environment.iter().map(|it| it.from).collect();
        let mut last = None;
        for row in rows {
            let known = row.partition_point(|leaf| Some(*leaf) <= last);
            groups.extend(row.iter().skip(known));
            last = last.max(row.last().copied());
        }
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

/// Finds every value in which leaves differ.
pub(super) fn find<'e>(
    hierarchy: &'e Hierarchy,
    leaves: &[GroupIndex],
    values: &LeafValues<'e>,
) -> Conflicts<'e> {
    let all: Arc<[GroupIndex]> = leaves.into();
    Conflicts {
        environment: environments(hierarchy, leaves),
        variables: differing(&all, &values.variables),
        classes: differing_classes(&all, &values.classes),
        config_data: differing_classes(&all, &values.config_data),
    }
}

/// Lists the leaves with an environment that is in question: one that a leaf trumps with, or any
/// where none does. A leaf without the flag is listed if its environment is one of them.
fn environments<'e>(hierarchy: &'e Hierarchy, leaves: &[GroupIndex]) -> Vec<ConflictShare<'e>> {
    let all = || leaves.iter().map(|leaf| (*leaf, hierarchy.group(*leaf)));
    let deciding = Deciding::among(all().map(|(_, group)| group));
    let in_question: BTreeSet<&EnvironmentName> = all()
        .filter(|(_, group)| deciding.has(group))
        .map(|(_, group)| &group.environment)
        .collect();
    if in_question.len() < 2 {
        return Vec::new();
    }
    all()
        .filter(|(_, group)| in_question.contains(&group.environment))
        .map(|(leaf, group)| ConflictShare {
            value: Cow::Owned(group.environment.as_str().into()),
            from: leaf,
            defined_by: leaf,
        })
        .collect()
}

fn differing_classes<'e>(
    leaves: &Arc<[GroupIndex]>,
    classes: &BTreeMap<&'e ClassName, LeafClass<'e>>,
) -> ClassDifferences<'e> {
    let of_class = |(class, it): (&&'e ClassName, &LeafClass<'e>)| {
        let parameters = differing(leaves, &it.parameters);
        (!parameters.is_empty()).then_some((*class, parameters))
    };
    classes.iter().filter_map(of_class).collect()
}

fn differing<'e, K: Ord>(
    leaves: &Arc<[GroupIndex]>,
    values: &BTreeMap<&'e K, LeafRows<'e>>,
) -> BTreeMap<&'e K, ConflictingLeaves<'e>> {
    let conflicting = |(key, rows): (&&'e K, &LeafRows<'e>)| {
        let conflicting = || ConflictingLeaves { leaves: Arc::clone(leaves), rows: rows.clone() };
        differ(rows).then(|| (*key, conflicting()))
    };
    values.iter().filter_map(conflicting).collect()
}

fn differ(rows: &[LeafRow<'_>]) -> bool {
    rows.windows(2).any(|pair| match pair {
        [a, b] => !std::ptr::eq(a.value, b.value) && !same(a.value, b.value),
        _ => false,
    })
}
