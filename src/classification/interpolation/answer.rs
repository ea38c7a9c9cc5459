//! Putting the facts of a node into what it gets.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;

use serde_json::{Map, Value, json};

use super::expand::{Expander, ExpansionFault, WithheldFacts};
use super::references::references_of_value;
use super::resolve::ReferencedValue;
use crate::classification::error::ClassificationError;
use crate::classification::merge::{Final, SourcedValue, ValueSource};
use crate::hierarchy::Estate;
use crate::model::{Interpolation, MASKED, Node};

impl Final<'_> {
    /// Puts facts into the class parameters and variables, if the estate says so.
    ///
    /// # Errors
    ///
    /// Returns an error if a fact is not known, or if an answer has no room for it.
    pub(in crate::classification) fn put_facts(
        &mut self,
        estate: &Estate,
        node: &Node,
        withheld: WithheldFacts,
    ) -> Result<(), ClassificationError> {
        if estate.interpolation == Interpolation::Off {
            return Ok(());
        }
        let mut expander = Expander::new(node, withheld);
        for (class, it) in &mut self.classes {
            put(&mut it.parameters, &mut expander, |key, source, fault| {
                failure(estate, format!("classes.{class}.{key}"), source, fault)
            })?;
        }
        put(&mut self.variables, &mut expander, |name, source, fault| {
            failure(estate, format!("variables.{name}"), source, fault)
        })
    }

    /// Puts the facts of a node into the values as people are shown it: with its secrets masked. The values of a
    /// classification by its own facts are replaced.
    ///
    /// # Errors
    ///
    /// Returns an error if an answer has no room for a fact.
    pub fn show_facts_of(
        &mut self,
        estate: &Estate,
        shown: &Node,
    ) -> Result<(), ClassificationError> {
        self.put_facts(estate, shown, WithheldFacts::Mark)
    }
}

impl SourcedValue<'_> {
    /// Returns the value with the facts of a node in it as people are shown it; [`MASKED`] where they have no room.
    pub fn with_facts_of(&self, shown: &Node) -> Cow<'_, Value> {
        if !self.is_expanded() {
            return Cow::Borrowed(&self.value);
        }
        match Expander::new(shown, WithheldFacts::Mark).value(self.written) {
            Ok(Some(value)) => Cow::Owned(value),
            Ok(None) => Cow::Borrowed(self.written),
            Err(_) => Cow::Owned(MASKED.into()),
        }
    }
}

fn put<'e, K: Display>(
    values: &mut BTreeMap<&'e K, SourcedValue<'e>>,
    expander: &mut Expander<'_>,
    fail: impl Fn(&K, Option<&ValueSource>, ExpansionFault) -> ClassificationError,
) -> Result<(), ClassificationError> {
    for (key, it) in values {
        match expander.value(it.written) {
            Ok(None) => it.value = Cow::Borrowed(it.written),
            Ok(Some(value)) => it.value = Cow::Owned(value),
            Err(fault) => return Err(fail(key, it.sources.first(), fault)),
        }
    }
    Ok(())
}

fn failure(
    estate: &Estate,
    key: String,
    source: Option<&ValueSource>,
    fault: ExpansionFault,
) -> ClassificationError {
    let hierarchy = &estate.hierarchy;
    let group = match source {
        Some(ValueSource::Group(index)) => hierarchy.group(*index),
        // What is set for the node alone is of no group.
        Some(ValueSource::Node) | None => hierarchy.group(hierarchy.root()),
    };
    ClassificationError::of_value(group, key, fault)
}

/// Returns the facts and trusted data that a value mentions, by path, as the node has them; null for what it does
/// not have.
pub(in crate::classification) fn facts_in(written: &Value, node: &Node) -> Map<String, Value> {
    let mut facts = Map::new();
    references_of_value(written, &mut |reference| {
        let value = match reference.resolve(node) {
            ReferencedValue::Missing => Value::Null,
            ReferencedValue::Value(value) => value.clone(),
            ReferencedValue::Pair(key, value) => json!([key, value]),
            ReferencedValue::Key(key) => key.into(),
            ReferencedValue::Withheld => MASKED.into(),
        };
        facts.insert(reference.path().to_string(), value);
    });
    facts
}
