//! Where leaves differ.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::deciding::Deciding;
use crate::hierarchy::{GroupIndex, Inherited, InheritedClass};
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

/// The differences of class parameters or config data.
pub(super) type ClassDifferences<'e> =
    BTreeMap<&'e ClassName, BTreeMap<&'e Key, Vec<ConflictShare<'e>>>>;

/// Everything in which the leaves of a node differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conflicts<'e> {
    /// The environments that differ; empty if they do not.
    pub environment: Vec<ConflictShare<'e>>,
    /// Variables.
    pub variables: BTreeMap<&'e VariableName, Vec<ConflictShare<'e>>>,
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
        let mut groups: Vec<GroupIndex> =
            values.chain([&self.environment]).flatten().map(|it| it.from).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

/// Finds every value in which the leaves differ.
pub(super) fn find<'e>(leaves: &[GroupIndex], inherited: &[Inherited<'e>]) -> Conflicts<'e> {
    let all: Vec<(GroupIndex, &Inherited<'e>)> = leaves.iter().copied().zip(inherited).collect();
    let mut variables: BTreeMap<&VariableName, Vec<ConflictShare<'e>>> = BTreeMap::new();
    for (leaf, inherited) in &all {
        for (name, it) in &inherited.variables {
            variables.entry(name).or_default().push(ConflictShare {
                value: Cow::Borrowed(it.value),
                from: *leaf,
                defined_by: it.source,
            });
        }
    }
    variables.retain(|_, differences| differ(differences));
    Conflicts {
        environment: environments(&all),
        variables,
        classes: classes(&all, |inherited| &inherited.classes),
        config_data: classes(&all, |inherited| &inherited.config_data),
    }
}

/// Lists the leaves with an environment that is in question: one that a leaf trumps with, or any
/// where none does. A leaf without the flag is listed if its environment is one of them.
fn environments<'e>(all: &[(GroupIndex, &Inherited<'e>)]) -> Vec<ConflictShare<'e>> {
    let deciding = Deciding::among(all.iter().map(|(_, leaf)| *leaf));
    let in_question: BTreeSet<&EnvironmentName> = all
        .iter()
        .filter(|(_, leaf)| deciding.has(leaf))
        .map(|(_, leaf)| leaf.environment)
        .collect();
    if in_question.len() < 2 {
        return Vec::new();
    }
    all.iter()
        .filter(|(_, leaf)| in_question.contains(leaf.environment))
        .map(|(index, leaf)| ConflictShare {
            value: Cow::Owned(leaf.environment.as_str().into()),
            from: *index,
            defined_by: *index,
        })
        .collect()
}

fn classes<'e, 'i>(
    all: &[(GroupIndex, &'i Inherited<'e>)],
    select: impl Fn(&'i Inherited<'e>) -> &'i BTreeMap<&'e ClassName, InheritedClass<'e>>,
) -> ClassDifferences<'e>
where
    'e: 'i,
{
    let mut found: ClassDifferences<'e> = BTreeMap::new();
    for (leaf, inherited) in all {
        for (class, it) in select(inherited) {
            for (parameter, it) in &it.parameters {
                found.entry(class).or_default().entry(parameter).or_default().push(ConflictShare {
                    value: Cow::Borrowed(it.value),
                    from: *leaf,
                    defined_by: it.source,
                });
            }
        }
    }
    found.retain(|_, parameters| {
        parameters.retain(|_, differences| differ(differences));
        !parameters.is_empty()
    });
    found
}

fn differ(differences: &[ConflictShare<'_>]) -> bool {
    differences.windows(2).any(|pair| match pair {
        [a, b] => !same(&a.value, &b.value),
        _ => false,
    })
}
