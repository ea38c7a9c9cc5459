//! What a test case actually comes to, and the expectation that says so.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::classification::{ClassSources, Explanation, Final, Outcome};
use crate::model::{ClassName, GroupId};

/// The actual values of a classification that tests can expect.
pub(super) struct ActualValues {
    groups: Vec<String>,
    /// `None` for a conflict.
    values: Option<ActualClassification>,
}

struct ActualClassification {
    environment: Value,
    classes: Parameters,
    variables: BTreeMap<String, Value>,
    config_data: Parameters,
}

type Parameters = BTreeMap<String, BTreeMap<String, Value>>;

impl ActualValues {
    pub(super) fn of(explanation: &Explanation<'_>) -> Self {
        let hierarchy = &explanation.estate.hierarchy;
        let groups = explanation.matches.iter().map(|it| hierarchy.group(it.group));
        let groups = groups.filter(|it| it.id != GroupId::ROOT).map(|it| it.name.to_string());
        let values = match &explanation.outcome {
            Outcome::Conflict(_) => None,
            Outcome::Classified(result) => Some(ActualClassification::of(result)),
        };
        Self { groups: groups.collect(), values }
    }

    /// Returns an expectation with what comes out in the place of what was expected.
    ///
    /// Only what is expected at all is written; for nothing, or nothing but classes that are not there, the
    /// groups and the environment.
    pub(super) fn expectation(&self, old: &Map<String, Value>) -> Map<String, Value> {
        let mut new = old.clone();
        new.shift_remove("conflict");
        if new.is_empty() {
            new.insert("groups".to_owned(), Value::Null);
            new.insert("environment".to_owned(), Value::Null);
        }
        if let Some(groups) = new.get_mut("groups") {
            *groups = self.groups_like(groups);
        }
        let Some(values) = &self.values else {
            // With a conflict, only the groups are compared besides.
            new.retain(|key, _| key == "groups");
            new.insert("conflict".to_owned(), Value::Bool(true));
            return new;
        };
        for (key, expected) in &mut new {
            match key.as_str() {
                "environment" => *expected = values.environment.clone(),
                "classes" => values_like(expected, &values.classes),
                "config_data" => values_like(expected, &values.config_data),
                "variables" => fields_like(expected, &values.variables),
                _ => {}
            }
        }
        // A part without values expects nothing.
        new.retain(|_, it| !it.is_null() && it.as_object().is_none_or(|it| !it.is_empty()));
        if new.is_empty() {
            new.insert("groups".to_owned(), self.groups_like(&Value::Null));
            new.insert("environment".to_owned(), values.environment.clone());
        }
        new
    }

    /// Returns the groups, those that were expected first and in their order.
    fn groups_like(&self, expected: &Value) -> Value {
        let expected: Vec<&str> =
            expected.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let kept = expected.iter().filter(|it| self.groups.iter().any(|name| name == *it));
        let fresh = self.groups.iter().map(String::as_str).filter(|it| !expected.contains(it));
        kept.copied().chain(fresh).map(Value::from).collect()
    }
}

impl ActualClassification {
    fn of(result: &Final<'_>) -> Self {
        let parameters = |classes: &BTreeMap<&ClassName, ClassSources<'_>>| -> Parameters {
            let class = |(name, it): (&&ClassName, &ClassSources<'_>)| {
                let values = it.parameters.iter();
                let values =
                    values.map(|(key, it)| (key.to_string(), it.value.as_ref().clone())).collect();
                (name.to_string(), values)
            };
            classes.iter().map(class).collect()
        };
        let variables = result.variables.iter();
        Self {
            environment: result.environment.as_str().into(),
            classes: parameters(&result.classes),
            variables: variables
                .map(|(name, it)| (name.to_string(), it.value.as_ref().clone()))
                .collect(),
            config_data: parameters(&result.config_data),
        }
    }
}

/// Puts what there is in the place of the classes that are expected; a class that is not there
/// cannot be expected.
fn values_like(expected: &mut Value, found: &Parameters) {
    let Value::Object(classes) = expected else { return };
    classes.retain(|class, _| found.contains_key(class.trim_start_matches("::")));
    for (class, parameters) in classes {
        if let Some(found) = found.get(class.trim_start_matches("::")) {
            fields_like(parameters, found);
        }
    }
}

/// Puts what there is in the place of the values that are expected; null is not there.
fn fields_like(expected: &mut Value, found: &BTreeMap<String, Value>) {
    let Value::Object(fields) = expected else { return };
    for (key, value) in fields {
        *value = found.get(key).cloned().unwrap_or_default();
    }
}
