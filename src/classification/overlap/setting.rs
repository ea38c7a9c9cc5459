//! What a group gives to nodes.

use serde::Serialize;
use serde_json::Value;

use crate::model::{ClassName, Classes, Group, Individual, Key, Table, VariableName};

/// Something that a group gives to nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Setting<'e> {
    /// Its environment.
    Environment,
    /// A parameter of a class.
    Parameter(&'e ClassName, &'e Key),
    /// A variable.
    Variable(&'e VariableName),
    /// An item of config data.
    ConfigData(&'e ClassName, &'e Key),
}

impl<'e> Setting<'e> {
    /// Returns what a group sets itself, but for its environment.
    pub fn of_group(group: &'e Group) -> impl Iterator<Item = (Self, &'e Value)> {
        Self::of_tables(&group.classes, &group.config_data, &group.variables)
    }

    /// Returns what is set for one node alone.
    pub fn of_individual(own: &'e Individual) -> impl Iterator<Item = (Self, &'e Value)> {
        Self::of_tables(&own.classes, &own.config_data, &own.variables)
    }

    fn of_tables(
        classes: &'e Classes,
        config_data: &'e Classes,
        variables: &'e Table<VariableName, Value>,
    ) -> impl Iterator<Item = (Self, &'e Value)> {
        let parameters = classes.iter().flat_map(|(class, parameters)| {
            parameters.iter().map(move |(name, it)| (Self::Parameter(class, name), it))
        });
        let data = config_data.iter().flat_map(|(class, keys)| {
            keys.iter().map(move |(key, it)| (Self::ConfigData(class, key), it))
        });
        let variables = variables.iter().map(|(name, it)| (Self::Variable(name), it));
        parameters.chain(data).chain(variables)
    }

    /// Returns the value that a group sets itself; none for the environment.
    pub fn value_in_group(self, group: &Group) -> Option<&Value> {
        self.value_in(&group.classes, &group.config_data, &group.variables)
    }

    /// Returns the value that is set for one node alone.
    pub fn value_in_individual(self, own: &Individual) -> Option<&Value> {
        self.value_in(&own.classes, &own.config_data, &own.variables)
    }

    fn value_in<'v>(
        self,
        classes: &'v Classes,
        config_data: &'v Classes,
        variables: &'v Table<VariableName, Value>,
    ) -> Option<&'v Value> {
        match self {
            Self::Environment => None,
            Self::Parameter(class, name) => classes.get(class)?.get(name),
            Self::Variable(name) => variables.get(name),
            Self::ConfigData(class, key) => config_data.get(class)?.get(key),
        }
    }

    /// Returns whether facts are put into its values.
    pub fn takes_facts(self) -> bool {
        matches!(self, Self::Parameter(..) | Self::Variable(_))
    }
}
