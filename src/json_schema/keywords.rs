//! Which keywords of a schema have schemas in them, and of which values those speak.

use jsonschema::Draft;
use serde_json::{Map, Value};

/// Of which value a schema inside of another one speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum AppliesTo<'v> {
    /// Of the same value.
    Same,
    /// Of what stands at one key of it.
    Key(&'v str),
    /// Of one of its elements.
    Index(usize),
    /// Of any of its elements, or of its keys.
    Any,
    /// Of none: it waits to be referred to.
    None,
}

/// A schema inside of another one.
pub(super) struct Inner<'v> {
    pub(super) step: AppliesTo<'v>,
    pub(super) value: &'v Value,
}

/// Keywords whose value is a schema.
const ONE: &[(&str, AppliesTo<'static>)] = &[
    ("not", AppliesTo::Same),
    ("if", AppliesTo::Same),
    ("then", AppliesTo::Same),
    ("else", AppliesTo::Same),
    ("additionalProperties", AppliesTo::Any),
    ("unevaluatedProperties", AppliesTo::Any),
    ("propertyNames", AppliesTo::Any),
    ("additionalItems", AppliesTo::Any),
    ("unevaluatedItems", AppliesTo::Any),
    ("items", AppliesTo::Any),
    ("contains", AppliesTo::Any),
    ("contentSchema", AppliesTo::None),
];

/// Keywords whose value is a list of schemas.
const LISTS: &[(&str, AppliesTo<'static>)] = &[
    ("allOf", AppliesTo::Same),
    ("anyOf", AppliesTo::Same),
    ("oneOf", AppliesTo::Same),
    ("prefixItems", AppliesTo::Index(0)),
    ("items", AppliesTo::Index(0)),
];

/// Keywords whose value has a schema at each key.
const MAPS: &[(&str, AppliesTo<'static>)] = &[
    ("properties", AppliesTo::Key("")),
    ("patternProperties", AppliesTo::Any),
    ("dependentSchemas", AppliesTo::Same),
    ("dependencies", AppliesTo::Same),
    ("$defs", AppliesTo::None),
    ("definitions", AppliesTo::None),
];

/// Keywords that name a schema elsewhere.
pub(super) const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// Returns whether the keywords beside a `$ref` count for nothing.
pub(super) fn ref_stands_alone(draft: Draft) -> bool {
    matches!(draft, Draft::Draft4 | Draft::Draft6 | Draft::Draft7)
}

/// Returns the schemas inside of a schema.
pub(super) fn inner(schema: &Map<String, Value>) -> Vec<Inner<'_>> {
    let mut found = Vec::new();
    for (keyword, value) in schema {
        let of = |table: &[(&str, AppliesTo<'static>)]| {
            table.iter().find(|(name, _)| name == keyword).map(|(_, step)| *step)
        };
        match value {
            Value::Object(_) | Value::Bool(_) => {
                if let Some(step) = of(ONE) {
                    found.push(Inner { step, value });
                }
            }
            _ => {}
        }
        match value {
            Value::Array(elements) => {
                let Some(step) = of(LISTS) else { continue };
                found.extend(elements.iter().enumerate().map(|(index, value)| {
                    let is_of_one = matches!(step, AppliesTo::Index(_));
                    Inner { step: if is_of_one { AppliesTo::Index(index) } else { step }, value }
                }));
            }
            Value::Object(fields) => {
                let Some(step) = of(MAPS) else { continue };
                found.extend(fields.iter().filter(|(_, it)| is_schema(it)).map(|(key, value)| {
                    let step = if step == AppliesTo::Key("") { AppliesTo::Key(key) } else { step };
                    Inner { step, value }
                }));
            }
            _ => {}
        }
    }
    found
}

fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}
