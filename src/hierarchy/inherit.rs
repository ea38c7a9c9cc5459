//! What a group inherits.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{GroupIndex, Hierarchy};
use crate::model::{ClassName, Classes, Condition, EnvironmentName, Key, VariableName};

/// A value and the group that defines it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sourced<'h> {
    /// The value; never null.
    pub value: &'h Value,
    /// The nearest group that sets it.
    pub source: GroupIndex,
}

/// A class as inherited.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InheritedClass<'h> {
    /// The groups that name the class, the nearest first.
    pub sources: Vec<GroupIndex>,
    /// Its parameters.
    pub parameters: BTreeMap<&'h Key, Sourced<'h>>,
}

/// The classification of a group with everything it inherits.
///
/// Values are merged at the level class -> parameter, config data and variables alike: the
/// nearest group wins, a value is replaced whole, null removes it. The environment and whether it
/// trumps are the group's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Inherited<'h> {
    /// The group's own environment.
    pub environment: &'h EnvironmentName,
    /// Whether the environment wins over that of other groups.
    pub environment_trumps: bool,
    /// Classes and their parameters.
    pub classes: BTreeMap<&'h ClassName, InheritedClass<'h>>,
    /// Variables.
    pub variables: BTreeMap<&'h VariableName, Sourced<'h>>,
    /// Config data.
    pub config_data: BTreeMap<&'h ClassName, InheritedClass<'h>>,
}

impl Hierarchy {
    /// Returns the classification of a group with everything it inherits.
    pub fn inherited(&self, index: GroupIndex) -> Inherited<'_> {
        let own = self.group(index);
        let mut inherited = Inherited {
            environment: &own.environment,
            environment_trumps: own.environment_trumps,
            classes: BTreeMap::new(),
            variables: BTreeMap::new(),
            config_data: BTreeMap::new(),
        };
        // The nearest group comes first, so what is there already stays; null keeps its place
        // until the end, so that it hides what is further up.
        for source in self.lineage(index) {
            let group = self.group(source);
            add(&mut inherited.classes, &group.classes, source);
            add(&mut inherited.config_data, &group.config_data, source);
            for (name, value) in group.variables.as_ref() {
                inherited.variables.entry(name).or_insert(Sourced { value, source });
            }
        }
        inherited.variables.retain(|_, sourced| !sourced.value.is_null());
        for class in inherited.classes.values_mut() {
            class.parameters.retain(|_, sourced| !sourced.value.is_null());
        }
        inherited.config_data.retain(|_, class| {
            class.parameters.retain(|_, sourced| !sourced.value.is_null());
            !class.parameters.is_empty()
        });
        inherited
    }
}

fn add<'h>(
    inherited: &mut BTreeMap<&'h ClassName, InheritedClass<'h>>,
    own: &'h Classes,
    source: GroupIndex,
) {
    for (class, parameters) in own {
        let entry = inherited.entry(class).or_default();
        entry.sources.push(source);
        for (parameter, value) in parameters {
            entry.parameters.entry(parameter).or_insert(Sourced { value, source });
        }
    }
}

/// Returns the rule of a group joined with those of all its ancestors that have one, as the
/// classifier API shows it: `["and", own, parent's, …, root's]`.
pub fn inherited_rule(hierarchy: &Hierarchy, index: GroupIndex) -> Option<Condition> {
    let rules: Vec<Condition> = hierarchy
        .lineage(index)
        .filter_map(|group| hierarchy.group(group).rule.as_deref().cloned())
        .collect();
    (!rules.is_empty()).then_some(Condition::And(rules))
}
