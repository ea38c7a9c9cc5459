//! Where the parts of a group are written.
//!
//! What a group sets is looked up by its place in the group's own tables: their keys stand in order, and so do the
//! spans. Names are not kept a second time.

use std::sync::Arc;

use super::group::GroupFile;
use super::group_spans::GroupPart;
use crate::diagnostic::Place;
use crate::document::Span;
use crate::model::{ClassName, Classes, Group, Key, Table, Value, VariableName};
use crate::rule::joined_pins;

impl GroupFile {
    fn place_of(&self, span: Span) -> Place {
        Place { file: Arc::clone(&self.file), span }
    }

    /// Returns where the group is written: its name, or the document.
    pub fn place(&self) -> Place {
        self.place_of(self.spans.place())
    }

    /// Returns whether the group is written at a place.
    pub fn is_at(&self, place: &Place) -> bool {
        self.spans.place() == place.span && self.file == place.file
    }

    fn part(&self, part: GroupPart) -> Option<Place> {
        self.spans.part(part).map(|it| self.place_of(it))
    }

    /// Returns where the id is written.
    pub fn id_place(&self) -> Option<Place> {
        self.part(GroupPart::Id)
    }

    /// Returns where the environment is written.
    pub fn environment_place(&self) -> Option<Place> {
        self.part(GroupPart::Environment)
    }

    /// Returns where the parent is written.
    pub fn parent_place(&self) -> Option<Place> {
        self.part(GroupPart::Parent)
    }

    /// Returns where the rule is written.
    pub fn rule_place(&self) -> Option<Place> {
        self.part(GroupPart::Rule)
    }

    /// Returns where the nodes are written that are pinned, in order.
    pub fn pin_places(&self) -> impl Iterator<Item = Place> {
        self.spans.pins().map(|it| self.place_of(it))
    }

    /// Returns where a pinned node is written.
    pub fn pin_place(&self, name: &str) -> Option<Place> {
        self.named_pins().find(|(it, _)| *it == name).map(|(_, place)| place)
    }

    /// Returns the pinned nodes and where each is written, in order.
    pub fn named_pins(&self) -> impl Iterator<Item = (&str, Place)> {
        let group = self.group().or(self.checked_group());
        let rule = group.and_then(|it| it.rule.as_deref());
        let names = rule.map(|it| joined_pins(it, self.spans.pin_count()));
        let pins = names.into_iter().flatten().zip(self.spans.pins());
        pins.map(|(name, span)| (name.as_ref(), self.place_of(span)))
    }

    fn value(&self, number: impl Fn(&Group) -> Option<usize>) -> Option<Place> {
        self.spans.value(number(self.checked_group()?)?).map(|it| self.place_of(it))
    }

    /// Returns where a class is written.
    pub fn class_place(&self, class: &ClassName) -> Option<Place> {
        self.value(|group| class_number(group, class))
    }

    /// Returns where a parameter of a class is written.
    pub fn parameter_place(&self, class: &ClassName, parameter: &Key) -> Option<Place> {
        self.value(|group| parameter_number(group, class, parameter))
    }

    /// Returns where the value of a parameter of a class is written.
    pub fn parameter_value_place(&self, class: &ClassName, parameter: &Key) -> Option<Place> {
        self.value(|group| Some(parameter_number(group, class, parameter)? + 1))
    }

    /// Returns where a variable is written.
    pub fn variable_place(&self, variable: &VariableName) -> Option<Place> {
        self.value(|group| Some(spans_of_classes(group) + group.variables.position(variable)?))
    }

    /// Returns where a key of the config data of a class is written.
    pub fn config_data_place(&self, class: &ClassName, key: &Key) -> Option<Place> {
        self.value(|group| {
            let before = spans_of_classes(group) + group.variables.len();
            let (class, keys) = place_in(&group.config_data, class, Table::len)?;
            Some(before + class + keys.position(key)?)
        })
    }

    /// Returns where the values of a valid group are written, for callers that ask for many: to find one by itself
    /// takes a walk over all that stand before it.
    pub fn value_places(&self) -> Option<ValuePlaces<'_>> {
        let group = self.group()?;
        let mut before = 0;
        let classes = starts(&group.classes, &mut before, spans_of_class);
        let variables = before;
        before += group.variables.len();
        let config_data = starts(&group.config_data, &mut before, Table::len);
        let spans = self.spans.values().collect();
        Some(ValuePlaces { file: &self.file, group, spans, classes, variables, config_data })
    }
}

/// Where the values of one group are written. It is made where it is used: an estate keeps its groups without it.
#[derive(Debug)]
pub struct ValuePlaces<'g> {
    file: &'g Arc<str>,
    group: &'g Group,
    /// The spans of all values, in order.
    spans: Vec<Span>,
    /// How many spans stand before those of each class.
    classes: Vec<usize>,
    /// How many stand before those of the variables.
    variables: usize,
    /// How many stand before those of the config data of each class.
    config_data: Vec<usize>,
}

impl ValuePlaces<'_> {
    fn place(&self, number: usize) -> Option<Place> {
        let span = *self.spans.get(number)?;
        Some(Place { file: Arc::clone(self.file), span })
    }

    /// Returns where a class is written.
    pub fn class(&self, class: &ClassName) -> Option<Place> {
        self.place(*self.classes.get(self.group.classes.position(class)?)?)
    }

    /// Returns where a parameter of a class is written.
    pub fn parameter(&self, class: &ClassName, parameter: &Key) -> Option<Place> {
        let before = *self.classes.get(self.group.classes.position(class)?)?;
        let parameters = self.group.classes.get(class)?;
        self.place(before + 1 + 2 * parameters.position(parameter)?)
    }

    /// Returns where a variable is written.
    pub fn variable(&self, variable: &VariableName) -> Option<Place> {
        self.place(self.variables + self.group.variables.position(variable)?)
    }

    /// Returns where a key of the config data of a class is written.
    pub fn config_data(&self, class: &ClassName, key: &Key) -> Option<Place> {
        let before = *self.config_data.get(self.group.config_data.position(class)?)?;
        self.place(before + self.group.config_data.get(class)?.position(key)?)
    }
}

/// Returns how many spans stand before those of each class, and counts them.
fn starts(classes: &Classes, before: &mut usize, spans: fn(&ClassTable) -> usize) -> Vec<usize> {
    let start = |(_, keys): (&ClassName, &ClassTable)| {
        let start = *before;
        *before += spans(keys);
        start
    };
    classes.iter().map(start).collect()
}

/// Returns how many spans a class with parameters has.
fn spans_of_class<V>(parameters: &Table<Key, V>) -> usize {
    1 + 2 * parameters.len()
}

fn spans_of_classes(group: &Group) -> usize {
    group.classes.iter().map(|(_, parameters)| spans_of_class(parameters)).sum()
}

/// Returns the number of a class among the spans of values.
fn class_number(group: &Group, class: &ClassName) -> Option<usize> {
    place_in(&group.classes, class, spans_of_class).map(|(number, _)| number)
}

/// Returns the number of a parameter among the spans of values; that of its value follows.
fn parameter_number(group: &Group, class: &ClassName, parameter: &Key) -> Option<usize> {
    let (number, parameters) = place_in(&group.classes, class, spans_of_class)?;
    Some(number + 1 + 2 * parameters.position(parameter)?)
}

/// Returns how many spans stand before those of a class, and what it sets.
fn place_in<'g>(
    classes: &'g Classes,
    class: &ClassName,
    spans: impl Fn(&'g ClassTable) -> usize,
) -> Option<(usize, &'g ClassTable)> {
    let mut before = 0;
    for (name, keys) in classes {
        if name == class {
            return Some((before, keys));
        }
        before += spans(keys);
    }
    None
}

/// What a class has.
type ClassTable = Table<Key, Value>;
