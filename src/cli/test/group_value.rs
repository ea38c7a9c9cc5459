//! The values that a group sets.

use crate::diagnostic::Place;
use crate::hierarchy::Inherited;
use crate::model::{ClassName, Classes, Group, Key, Value, VariableName};
use crate::validation::ValuePlaces;

/// Something that a group sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum GroupValue<'e> {
    /// A class.
    Class(&'e ClassName),
    /// A parameter of a class.
    Parameter(&'e ClassName, &'e Key),
    /// A variable.
    Variable(&'e VariableName),
    /// A key of the config data of a class.
    ConfigData(&'e ClassName, &'e Key),
}

impl<'e> GroupValue<'e> {
    /// Returns what a group sets: a class alone only where it has no parameters.
    pub(super) fn of(group: &'e Group) -> impl Iterator<Item = (Self, Option<&'e Value>)> {
        let classes = group.classes.iter();
        let bare = classes.filter(|(_, parameters)| parameters.is_empty());
        let bare = bare.map(|(class, _)| (Self::Class(class), None));
        let variables = group.variables.iter();
        let variables = variables.map(|(name, value)| (Self::Variable(name), Some(value)));
        bare.chain(keys(&group.classes, Self::Parameter))
            .chain(variables)
            .chain(keys(&group.config_data, Self::ConfigData))
    }

    /// Returns whether a group gets the value, its own or inherited.
    pub(super) fn is_in(self, inherited: &Inherited<'_>) -> bool {
        match self {
            Self::Class(class) => inherited.classes.contains_key(class),
            Self::Parameter(class, key) => {
                let class = inherited.classes.get(class);
                class.is_some_and(|it| it.parameters.contains_key(key))
            }
            Self::Variable(name) => inherited.variables.contains_key(name),
            Self::ConfigData(class, key) => {
                let class = inherited.config_data.get(class);
                class.is_some_and(|it| it.parameters.contains_key(key))
            }
        }
    }

    /// Returns where it is written.
    pub(super) fn place(self, written: &ValuePlaces<'_>) -> Option<Place> {
        match self {
            Self::Class(class) => written.class(class),
            Self::Parameter(class, key) => written.parameter(class, key),
            Self::Variable(name) => written.variable(name),
            Self::ConfigData(class, key) => written.config_data(class, key),
        }
    }

    /// Names it for people.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Class(class) => format!("the class `{class}`"),
            Self::Parameter(class, key) => format!("`{key}` of the class `{class}`"),
            Self::Variable(name) => format!("the variable `{name}`"),
            Self::ConfigData(class, key) => format!("`{key}` of the config data of `{class}`"),
        }
    }
}

fn keys<'e>(
    classes: &'e Classes,
    value: fn(&'e ClassName, &'e Key) -> GroupValue<'e>,
) -> impl Iterator<Item = (GroupValue<'e>, Option<&'e Value>)> {
    classes.iter().flat_map(move |(class, parameters)| {
        parameters.iter().map(move |(key, it)| (value(class, key), Some(it)))
    })
}
