//! The values that a group sets.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::classification::{LeafClass, LeafValues, all_have};
use crate::diagnostic::Place;
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

    /// Returns whether each of some leaves gets the value, its own or inherited; a class is always had by those below a
    /// group that names it.
    pub(super) fn all_have(self, values: &LeafValues<'_>, leaves: &Range<usize>) -> bool {
        match self {
            Self::Class(class) => values.classes.contains_key(class),
            Self::Parameter(class, key) => all_have_key(&values.classes, (class, key), leaves),
            Self::Variable(name) => {
                values.variables.get(name).is_some_and(|rows| all_have(rows, leaves))
            }
            Self::ConfigData(class, key) => all_have_key(&values.config_data, (class, key), leaves),
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

fn all_have_key(
    classes: &BTreeMap<&ClassName, LeafClass<'_>>,
    (class, key): (&ClassName, &Key),
    leaves: &Range<usize>,
) -> bool {
    let rows = classes.get(class).and_then(|it| it.parameters.get(key));
    rows.is_some_and(|rows| all_have(rows, leaves))
}
