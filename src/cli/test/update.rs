//! Writing expectations from what comes out now.
#![expect(clippy::disallowed_methods, reason = "tests are files")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Map, Value};

use super::verdict::Verdict;
use crate::classification::{ClassSources, Explanation, Final, Outcome};
use crate::document::{Layout, Limits, edit, read};
use crate::model::{ClassName, GroupId, same};

/// What comes out of a classification, as far as tests can expect it.
pub(super) struct Present {
    groups: Vec<String>,
    /// Nothing if leaves differ.
    values: Option<Values>,
}

struct Values {
    environment: Value,
    classes: Parameters,
    variables: BTreeMap<String, Value>,
    config_data: Parameters,
}

type Parameters = BTreeMap<String, BTreeMap<String, Value>>;

impl Present {
    pub(super) fn of(explanation: &Explanation<'_>) -> Self {
        let hierarchy = &explanation.estate.hierarchy;
        let groups = explanation.matches.iter().map(|it| hierarchy.group(it.group));
        let groups = groups.filter(|it| it.id != GroupId::ROOT).map(|it| it.name.to_string());
        let values = match &explanation.outcome {
            Outcome::Conflict(_) => None,
            Outcome::Classified(result) => Some(Values::of(result)),
        };
        Self { groups: groups.collect(), values }
    }

    /// Returns an expectation with what comes out in the place of what was expected.
    ///
    /// Only what is expected at all is written; for nothing, the groups and the environment.
    fn expectation(&self, old: &Map<String, Value>) -> Map<String, Value> {
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

impl Values {
    fn of(result: &Final<'_>) -> Self {
        let parameters = |classes: &BTreeMap<&ClassName, ClassSources<'_>>| -> Parameters {
            let class = |(name, it): (&&ClassName, &ClassSources<'_>)| {
                let values = it.parameters.iter();
                let values = values.map(|(key, it)| (key.to_string(), it.value.clone())).collect();
                (name.to_string(), values)
            };
            classes.iter().map(class).collect()
        };
        let variables = result.variables.iter();
        Self {
            environment: result.environment.as_str().into(),
            classes: parameters(&result.classes),
            variables: variables.map(|(name, it)| (name.to_string(), it.value.clone())).collect(),
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

/// Writes what comes out now into the tests that expect something else, or nothing; returns the
/// files with the count of tests that were written in each.
pub(super) fn write(
    verdicts: &[Verdict<'_>],
    directory: &Path,
) -> Result<BTreeMap<Arc<str>, usize>> {
    let mut by_file: BTreeMap<Arc<str>, Vec<&Verdict<'_>>> = BTreeMap::new();
    for verdict in verdicts {
        by_file.entry(Arc::clone(&verdict.test.place.file)).or_default().push(verdict);
    }
    let mut written = BTreeMap::new();
    for (file, verdicts) in by_file {
        let path = directory.join(file.as_ref());
        let what = || format!("cannot write the expectations in `{}`", path.display());
        let old = std::fs::read_to_string(&path).with_context(what)?;
        let (new, count) = update(&old, &verdicts).with_context(what)?;
        if count > 0 {
            std::fs::write(&path, new).with_context(what)?;
            written.insert(file, count);
        }
    }
    Ok(written)
}

/// Returns a file of tests with the expectations of some, and how many they are.
fn update(text: &str, verdicts: &[&Verdict<'_>]) -> Result<(String, usize)> {
    let (mut updated, mut count) = (text.to_owned(), 0);
    let contents = read(text.as_bytes(), &Limits::DEFAULT);
    for (number, document) in contents.documents.iter().enumerate() {
        let mut target = document.to_value();
        let mut changes = 0;
        for (test, value) in
            document.elements().iter().zip(target.as_array_mut().into_iter().flatten())
        {
            let place = test.get("name").map(|it| it.span.start);
            let here = |it: &&&Verdict<'_>| Some(it.test.place.span.start) == place;
            let Some(present) = verdicts.iter().find(here).and_then(|it| it.present.as_ref())
            else {
                continue;
            };
            let Some(Value::Object(old)) = value.get("expect") else { continue };
            let new = Value::Object(present.expectation(old));
            if let Some(expect) = value.get_mut("expect").filter(|it| !same(it, &new)) {
                *expect = new;
                changes += 1;
            }
        }
        if changes > 0 {
            updated = edit(&updated, number, &target, &|_| Layout::Flow)
                .map_err(|error| anyhow!("{error}"))?;
            count += changes;
        }
    }
    Ok((updated, count))
}
