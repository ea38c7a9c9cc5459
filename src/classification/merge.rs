//! The leaves' values together, and the node's own on top.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::deciding::Deciding;
use super::leaf_values::{LeafClass, LeafRows, LeafValues};
use crate::hierarchy::{Estate, GroupIndex};
use crate::model::{ClassName, EnvironmentName, Individual, Key, Table, VariableName};

/// What defines a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueSource {
    /// A group.
    Group(GroupIndex),
    /// The node's individual classification.
    Node,
}

/// A value with everything that defines it.
#[derive(Clone, Debug, PartialEq)]
pub struct SourcedValue<'e> {
    /// The value that the node gets, with facts in it if there are any; never null.
    pub value: Cow<'e, Value>,
    /// The value as it is written.
    pub written: &'e Value,
    /// The groups that define it, or the node.
    pub sources: BTreeSet<ValueSource>,
}

impl<'e> SourcedValue<'e> {
    fn of(written: &'e Value, sources: BTreeSet<ValueSource>) -> Self {
        Self { value: Cow::Borrowed(written), written, sources }
    }

    /// Returns whether the value has a `$`, so that what comes out may be another than what is written.
    pub fn is_expanded(&self) -> bool {
        matches!(self.value, Cow::Owned(_))
    }
}

/// Values by their names.
pub type SourcedValues<'e, K> = BTreeMap<&'e K, SourcedValue<'e>>;

/// A class with everything that names it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassSources<'e> {
    /// The groups that name the class, and the node if it does.
    pub sources: BTreeSet<ValueSource>,
    /// Its parameters.
    pub parameters: SourcedValues<'e, Key>,
}

/// The classification of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Final<'e> {
    /// The environment.
    pub environment: &'e EnvironmentName,
    /// The leaves that say so.
    pub environment_sources: BTreeSet<ValueSource>,
    /// Classes and their parameters.
    pub classes: BTreeMap<&'e ClassName, ClassSources<'e>>,
    /// Variables.
    pub variables: SourcedValues<'e, VariableName>,
    /// Config data; no class is without a key.
    pub config_data: BTreeMap<&'e ClassName, ClassSources<'e>>,
}

/// Joins leaves that do not differ, and puts the individual classification on top.
pub(super) fn merge<'e>(
    estate: &'e Estate,
    leaves: &[GroupIndex],
    values: &LeafValues<'e>,
    individual: Option<&'e Individual>,
) -> Final<'e> {
    let hierarchy = &estate.hierarchy;
    let group = |leaf: &GroupIndex| hierarchy.group(*leaf);
    let deciding = Deciding::among(leaves.iter().map(group));
    let decisive: Vec<&GroupIndex> =
        leaves.iter().filter(|leaf| deciding.has(group(leaf))).collect();
    // The root group always matches; without any leaf its environment stands all the same.
    let decides = decisive.first().copied().copied().unwrap_or(hierarchy.root());
    let mut result = Final {
        environment: &group(&decides).environment,
        environment_sources: decisive.into_iter().copied().map(ValueSource::Group).collect(),
        classes: merged_classes(&values.classes),
        variables: merged(&values.variables),
        config_data: merged_classes(&values.config_data),
    };
    if let Some(individual) = individual {
        for (found, own) in [
            (&mut result.classes, &individual.classes),
            (&mut result.config_data, &individual.config_data),
        ] {
            for (class, parameters) in own {
                let entry = found.entry(class).or_default();
                entry.sources.insert(ValueSource::Node);
                replace_all(&mut entry.parameters, parameters);
            }
        }
        replace_all(&mut result.variables, &individual.variables);
    }
    result.config_data.retain(|_, class| !class.parameters.is_empty());
    result
}

fn merged_classes<'e>(
    classes: &BTreeMap<&'e ClassName, LeafClass<'e>>,
) -> BTreeMap<&'e ClassName, ClassSources<'e>> {
    let class = |(name, it): (&&'e ClassName, &LeafClass<'e>)| {
        let sources = it.sources.iter().copied().map(ValueSource::Group).collect();
        (*name, ClassSources { sources, parameters: merged(&it.parameters) })
    };
    classes.iter().map(class).collect()
}

/// Returns the values of leaves that do not differ, each with all groups that leaves have it of.
fn merged<'e, K: Ord>(values: &BTreeMap<&'e K, LeafRows<'e>>) -> SourcedValues<'e, K> {
    let value = |(key, rows): (&&'e K, &LeafRows<'e>)| {
        let written = rows.first()?.value;
        let sources = rows.iter().map(|it| ValueSource::Group(it.defined_by)).collect();
        Some((*key, SourcedValue::of(written, sources)))
    };
    values.iter().filter_map(value).collect()
}

fn replace_all<'e, K: Ord>(values: &mut SourcedValues<'e, K>, own: &'e Table<K, Value>) {
    for (key, value) in own {
        if value.is_null() {
            values.remove(key);
        } else {
            let sources = BTreeSet::from([ValueSource::Node]);
            values.insert(key, SourcedValue::of(value, sources));
        }
    }
}
