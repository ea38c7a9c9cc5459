//! The leaves' values together, and the node's own on top.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::deciding::Deciding;
use crate::hierarchy::{Estate, GroupIndex, Inherited, InheritedClass};
use crate::model::{ClassName, Classes, EnvironmentName, Individual, Key, VariableName};

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

/// A class with everything that names it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassSources<'e> {
    /// The groups that name the class, and the node if it does.
    pub sources: BTreeSet<ValueSource>,
    /// Its parameters.
    pub parameters: BTreeMap<&'e Key, SourcedValue<'e>>,
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
    pub variables: BTreeMap<&'e VariableName, SourcedValue<'e>>,
    /// Config data.
    pub config_data: BTreeMap<&'e ClassName, ClassSources<'e>>,
}

/// Joins leaves that do not differ, and puts the individual classification on top.
pub(super) fn merge<'e>(
    estate: &'e Estate,
    leaves: &[GroupIndex],
    inherited: &[Inherited<'e>],
    individual: Option<&'e Individual>,
) -> Final<'e> {
    let deciding = Deciding::among(inherited);
    let decisive: Vec<(&GroupIndex, &Inherited<'e>)> =
        leaves.iter().zip(inherited).filter(|(_, inherited)| deciding.has(inherited)).collect();
    let hierarchy = &estate.hierarchy;
    // The root group always matches; without any leaf its environment stands all the same.
    let root = &hierarchy.group(hierarchy.root()).environment;
    let mut merged = Final {
        environment: decisive.first().map_or(root, |(_, leaf)| leaf.environment),
        environment_sources: decisive.iter().map(|(leaf, _)| ValueSource::Group(**leaf)).collect(),
        classes: BTreeMap::new(),
        variables: BTreeMap::new(),
        config_data: BTreeMap::new(),
    };
    for leaf in inherited {
        add(&mut merged.classes, &leaf.classes);
        add(&mut merged.config_data, &leaf.config_data);
        for (name, it) in &leaf.variables {
            put(&mut merged.variables, name, it.value, ValueSource::Group(it.source));
        }
    }
    if let Some(individual) = individual {
        override_classes(&mut merged.classes, &individual.classes);
        override_classes(&mut merged.config_data, &individual.config_data);
        for (name, value) in &individual.variables {
            replace(&mut merged.variables, name, value);
        }
    }
    merged.config_data.retain(|_, class| !class.parameters.is_empty());
    merged
}

fn add<'e>(
    merged: &mut BTreeMap<&'e ClassName, ClassSources<'e>>,
    leaf: &BTreeMap<&'e ClassName, InheritedClass<'e>>,
) {
    for (class, it) in leaf {
        let entry = merged.entry(class).or_default();
        entry.sources.extend(it.sources.iter().copied().map(ValueSource::Group));
        for (parameter, it) in &it.parameters {
            put(&mut entry.parameters, parameter, it.value, ValueSource::Group(it.source));
        }
    }
}

fn put<'e, K: Ord + ?Sized>(
    merged: &mut BTreeMap<&'e K, SourcedValue<'e>>,
    key: &'e K,
    value: &'e Value,
    source: ValueSource,
) {
    let entry = merged.entry(key);
    entry.or_insert_with(|| SourcedValue::of(value, BTreeSet::new())).sources.insert(source);
}

fn override_classes<'e>(merged: &mut BTreeMap<&'e ClassName, ClassSources<'e>>, own: &'e Classes) {
    for (class, parameters) in own {
        let entry = merged.entry(class).or_default();
        entry.sources.insert(ValueSource::Node);
        for (parameter, value) in parameters {
            replace(&mut entry.parameters, parameter, value);
        }
    }
}

fn replace<'e, K: Ord + ?Sized>(
    merged: &mut BTreeMap<&'e K, SourcedValue<'e>>,
    key: &'e K,
    value: &'e Value,
) {
    if value.is_null() {
        merged.remove(key);
    } else {
        merged.insert(key, SourcedValue::of(value, BTreeSet::from([ValueSource::Node])));
    }
}
