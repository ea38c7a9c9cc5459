//! Groups as clients send them.

use std::fmt::{self, Display};

use serde_json::{Map, Value};

use super::number::check_numbers;
use super::rejection::Rejection;
use super::wording::first_problems;
use crate::diagnostic::{Kind, Severity};
use crate::document;
use crate::model::{Group, GroupId};
use crate::validation::{FileKind, FileReading, ParentName, SourceContent, SourceFile, read_file};

/// The keys of a group that clients set.
pub(super) const KEYS: &[&str] = &[
    "name",
    "id",
    "description",
    "environment",
    "environment_trumps",
    "parent",
    "rule",
    "classes",
    "config_data",
    "variables",
];

/// What clients send back of what they read.
pub(super) const READ_ONLY: &[&str] =
    &["last_edited", "serial_number", "deleted", "children", "immediate_child_count"];

const NOT_AN_OBJECT: &str = "(not (map? the-body))";

const MALFORMED_RULE: &str = "([:rule \"The rule is malformed. Please consult the group documentation for details on the rule grammar.\"])";

/// Refuses a body that is not an object or has keys that no group has, as Puppet Enterprise says it.
pub(super) fn object<'b>(
    body: &'b Value,
    schema: &str,
) -> Result<&'b Map<String, Value>, Rejection> {
    fields_of(body).map_err(|error| Rejection::schema_violation(body.clone(), schema, error.into()))
}

fn fields_of(body: &Value) -> Result<&Map<String, Value>, String> {
    let Value::Object(fields) = body else {
        return Err(NOT_AN_OBJECT.to_owned());
    };
    let is_unknown = |it: &&str| !KEYS.contains(it) && !READ_ONLY.contains(it);
    match disallowed_keys(fields.keys().map(String::as_str).filter(is_unknown)) {
        None => Ok(fields),
        Some(error) => Err(error),
    }
}

/// A key that a body must not have, as Puppet Enterprise says it.
struct DisallowedKey<'k>(&'k str);

impl Display for DisallowedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[:{} disallowed-key]", self.0)
    }
}

/// Returns the error of a body with keys that it must not have; none without such keys.
pub fn disallowed_keys<'k>(keys: impl Iterator<Item = &'k str>) -> Option<String> {
    let error = first_problems(keys.map(DisallowedKey), " ");
    (!error.is_empty()).then(|| format!("({error})"))
}

/// Reads a whole group, by the same reader as files; absent keys have their defaults.
///
/// # Errors
///
/// Returns what is wrong with it.
pub fn read_group(body: &Value) -> Result<Group, Rejection> {
    read_body(body.clone(), || body.clone())
}

/// Reads a whole group, of which nothing is copied. A rejection shows what `submitted` returns.
pub(super) fn read_body(body: Value, submitted: impl Fn() -> Value) -> Result<Group, Rejection> {
    let violation = |error: String| Rejection::schema_violation(submitted(), "Group", error.into());
    let fields = fields_of(&body).map_err(violation)?;
    check_numbers(&body, "").map_err(violation)?;
    let missing: Vec<String> = ["name", "parent", "classes"]
        .into_iter()
        .filter(|key| !fields.contains_key(*key))
        .map(|key| format!("[:{key} missing-required-key]"))
        .collect();
    if !missing.is_empty() {
        return Err(violation(format!("({})", missing.join(" "))));
    }
    let Value::Object(mut fields) = body else {
        return Err(violation(NOT_AN_OBJECT.to_owned()));
    };
    fields.retain(|key, value| {
        let optional = !matches!(key.as_str(), "name" | "parent" | "classes");
        !(READ_ONLY.contains(&key.as_str()) || optional && value.is_null())
    });
    if fields.get("classes").is_some_and(|it| !it.is_object()) {
        return Err(violation("([:classes (not (map? the-value))])".to_owned()));
    }
    // Files may write rules as text; the API has one form.
    if fields.get("rule").is_some_and(|it| !it.is_array()) {
        return Err(violation(MALFORMED_RULE.to_owned()));
    }
    if let Some(parent) = fields.get("parent").and_then(Value::as_str)
        && parent.parse::<GroupId>().is_err()
    {
        return Err(Rejection::malformed_parent(parent));
    }
    let reading = read_json(fields);
    if reading.diagnostics.iter().any(|it| it.severity == Severity::Error) {
        return Err(violation(problems(&reading)));
    }
    let found = reading.groups().first();
    match found.and_then(|file| Some((file.group()?.clone(), file.parent.clone()?))) {
        Some((group, ParentName::Id(parent))) => Ok(Group { parent, ..group }),
        Some((_, ParentName::Name(name))) => Err(Rejection::malformed_parent(&name)),
        None => Err(violation(problems(&reading))),
    }
}

/// Reads a group that came as JSON as if it stood in a file, written so that each number stays one:
/// JSON's `1e3` is a string to YAML 1.1.
pub fn read_json(fields: Map<String, Value>) -> FileReading {
    let fields = Value::Object(fields);
    let text = document::write(&fields, &|_| document::ValueLayout::Flow);
    // What is read takes as much memory again.
    drop(fields);
    let content = SourceContent::Bytes(text.into_bytes().into());
    let file = SourceFile { path: "the body".into(), content };
    read_file(&file, FileKind::Groups)
}

fn problems(reading: &FileReading) -> String {
    let errors = || reading.diagnostics.iter().filter(|it| it.severity == Severity::Error);
    let text = first_problems(errors().map(|it| &it.message), "; ");
    let about_rule = |kind: Kind| matches!(kind, Kind::InvalidRule | Kind::InvalidRegex);
    if errors().any(|it| about_rule(it.kind)) {
        return format!("{MALFORMED_RULE}: {text}");
    }
    text
}

/// Merges a delta into a value: what is null is taken out, objects are merged, all else is
/// replaced.
pub(super) fn merge(current: &mut Map<String, Value>, delta: &Map<String, Value>) {
    // At once: to take out one of many keys moves all behind it.
    current.retain(|key, _| !delta.get(key).is_some_and(Value::is_null));
    for (key, value) in delta {
        match (value, current.get_mut(key)) {
            (Value::Null, _) => {}
            (Value::Object(delta), Some(Value::Object(inner))) => merge(inner, delta),
            (Value::Object(delta), _) => {
                let mut fresh = Map::new();
                merge(&mut fresh, delta);
                current.insert(key.clone(), fresh.into());
            }
            (value, _) => drop(current.insert(key.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A body of many unknown keys was answered with five times its bytes.
    #[test]
    fn an_error_names_a_hundred_keys_and_counts_the_others() {
        let error = |keys: usize| {
            let keys: Vec<String> = (0..keys).map(|it| format!("k{it:03}")).collect();
            disallowed_keys(keys.iter().map(String::as_str))
        };
        assert_eq!(error(0), None);
        let two = "([:k000 disallowed-key] [:k001 disallowed-key])";
        assert_eq!(error(2).as_deref(), Some(two));
        assert!(error(100).unwrap().ends_with(" [:k099 disallowed-key])"));
        assert!(error(102).unwrap().ends_with(" [:k099 disallowed-key] and 2 more)"));
    }

    #[test]
    fn an_error_names_a_hundred_problems_and_counts_the_others() {
        let classes: Map<String, Value> =
            (0..130).map(|it| (format!("Not a class {it:03}"), json!({}))).collect();
        let parent = GroupId::ROOT.to_string();
        let body = json!({"name": "a", "parent": parent, "classes": classes});
        let error = read_group(&body).unwrap_err().message;
        let named = error.matches("Not a class").count();
        assert!(named < 230 && error.contains("; and 30 more"), "{named} in {error}");
    }
}
