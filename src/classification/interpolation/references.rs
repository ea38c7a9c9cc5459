//! Which facts and trusted data the values of groups and nodes mention.

use serde_json::Value;

use super::reference::FactReference;
use super::template::Template;
use crate::hierarchy::Estate;
use crate::model::{Classes, Group, Interpolation, Table, VariableName};

/// Passes on every reference in the values of an estate; none if facts are not put into them.
pub fn references_of_estate(estate: &Estate, each: &mut impl FnMut(&FactReference)) {
    if estate.interpolation == Interpolation::Off {
        return;
    }
    for group in estate.hierarchy.groups() {
        references_of_group(group, each);
    }
    for own in estate.individuals.values() {
        references_of(&own.classes, &own.variables, each);
    }
}

/// Passes on every reference in the values that a group sets.
pub fn references_of_group(group: &Group, each: &mut impl FnMut(&FactReference)) {
    references_of(&group.classes, &group.variables, each);
}

fn references_of(
    classes: &Classes,
    variables: &Table<VariableName, Value>,
    each: &mut impl FnMut(&FactReference),
) {
    for (_, parameters) in classes {
        for (_, value) in parameters {
            references_of_value(value, each);
        }
    }
    for (_, value) in variables {
        references_of_value(value, each);
    }
}

/// Passes on every reference in a value.
pub(in crate::classification) fn references_of_value(
    value: &Value,
    each: &mut impl FnMut(&FactReference),
) {
    match value {
        Value::String(text) => {
            if let Some(template) = Template::parse(text) {
                template.references().for_each(each);
            }
        }
        Value::Array(elements) => {
            for element in elements {
                references_of_value(element, each);
            }
        }
        Value::Object(fields) => {
            for field in fields.values() {
                references_of_value(field, each);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
