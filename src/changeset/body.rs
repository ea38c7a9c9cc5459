//! Groups as clients send them.

use std::fmt::{self, Display};

use serde_json::{Map, Value};

use super::number::check_numbers;
use super::rejection::Rejection;
use crate::diagnostic::{Kind, Severity};
use crate::document;
use crate::model::{Group, GroupId};
use crate::validation::{FileKind, FileReading, ParentName, SourceContent, SourceFile, read_file};
use crate::wording::first_sentences;

/// How many problems of a body an error names: an answer is not several times as long as what was asked.
pub const SHOWN_PROBLEMS: usize = 100;

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

/// Joins what is wrong with a body: the first hundred, and how many more there are; empty if nothing is.
pub fn first_problems(problems: impl Iterator<Item: Display>, separator: &str) -> String {
    first_sentences(problems, SHOWN_PROBLEMS, separator)
}

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
    let of_api = take_problems(&mut fields);
    if of_api.is_empty()
        && let Some(parent) = fields.get("parent").and_then(Value::as_str)
        && parent.parse::<GroupId>().is_err()
    {
        return Err(Rejection::malformed_parent(parent));
    }
    let reading = read_json(fields);
    let of_reader = problems(&reading);
    if !of_reader.is_empty() || !of_api.is_empty() {
        let all = [of_reader.as_str()].into_iter().chain(of_api).filter(|it| !it.is_empty());
        return Err(violation(all.collect::<Vec<_>>().join("; ")));
    }
    let found = reading.groups().first();
    match found.and_then(|file| Some((file.group()?.clone(), file.parent.clone()?))) {
        Some((group, ParentName::Id(parent))) => Ok(Group { parent, ..group }),
        Some((_, ParentName::Name(name))) => Err(Rejection::malformed_parent(&name)),
        None => Err(violation("the group cannot be read".to_owned())),
    }
}

/// Takes out of a body what a file may have and a body must not, and returns what is wrong with it.
fn take_problems(fields: &mut Map<String, Value>) -> Vec<&'static str> {
    let mut problems = Vec::new();
    // In a file, it is the root group.
    if fields.get("parent").is_some_and(Value::is_null) {
        problems.push("`parent`: expected a string, found null");
    }
    // Files may write rules as text; the API has one form.
    if fields.get("rule").is_some_and(|it| !it.is_array()) {
        fields.shift_remove("rule");
        problems.push(MALFORMED_RULE);
    }
    if fields.get("classes").is_some_and(|it| !it.is_object()) {
        fields.shift_remove("classes");
        problems.push("([:classes (not (map? the-value))])");
    }
    problems
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

/// Returns what the reader of files finds; nothing in a valid group.
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
    use crate::changeset::RejectionKind;
    use crate::hierarchy::group_to_value;
    use crate::table::each_row;
    use crate::validation::{Search, SourceContent, SourceFile, validate};

    /// Returns a rule with so many conditions around a comparison, in the array form or in the console's notation.
    fn nested(path: &Value, depth: usize, notation: &str) -> Value {
        let words = ["and", "or"].into_iter().cycle().take(depth);
        if notation == "array" {
            let inner = json!(["=", path, "b"]);
            return words.fold(inner, |it, word| json!([word, it, ["=", "name", "c"]]));
        }
        let name = path.as_str().unwrap_or("a.b");
        words.fold(format!("{name} = b"), |it, word| format!("({it}) {word} name = c")).into()
    }

    /// Rules in the console's notation, and those with pinned nodes, could be nested deeper in a file than in a body.
    #[test]
    fn each_rule_that_a_file_may_have_is_read_again_as_the_api_shows_it() {
        let rows = [
            (json!(["fact", "a", "b"]), json!(null), 61),
            (json!(["fact", "a", "b"]), json!(["p"]), 60),
            (json!("name"), json!(null), 62),
            (json!("name"), json!(["p"]), 61),
        ];
        each_row(rows, |(path, pinned, deepest)| {
            for (depth, notation) in (50..70).flat_map(|it| [(it, "array"), (it, "console")]) {
                let rule = nested(&path, depth, notation);
                let mut file = json!({"name": "A", "rule": rule});
                if pinned.is_array() {
                    file["pinned"] = pinned.clone();
                }
                let file = file.to_string();
                let file = SourceFile {
                    path: "groups/a.yaml".into(),
                    content: SourceContent::Bytes(file.into_bytes().into()),
                };
                let estate = validate(&[file], Search::Decisive).estate;
                assert_eq!(estate.is_some(), depth <= deepest, "{depth} {notation}");
                let Some(estate) = estate else { continue };
                let mut groups = estate.hierarchy.groups();
                let group = groups.find(|it| it.name.as_str() == "A").unwrap();
                let read = read_group(&group_to_value(group)).unwrap();
                assert_eq!(&read.rule, &group.rule, "{depth} {notation}");
            }
        });
    }

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

    /// A parent that is null was rejected without a word.
    #[test]
    fn an_error_names_each_key_that_is_null_or_of_a_wrong_type() {
        let map = "([:classes (not (map? the-value))])";
        let text = |key: &str, found: &str| format!("`{key}`: expected a string, found {found}");
        let rows = [
            (json!({"name": null}), text("name", "null")),
            (json!({"name": 1}), text("name", "a number")),
            (json!({"parent": null}), text("parent", "null")),
            (json!({"parent": 1}), text("parent", "a number")),
            (json!({"parent": [1]}), text("parent", "a list")),
            (json!({"classes": null}), map.to_owned()),
            (json!({"classes": []}), map.to_owned()),
            (json!({"id": 1}), text("id", "a number")),
            (json!({"description": 1}), text("description", "a number")),
            (json!({"environment": 1}), text("environment", "a number")),
            (
                json!({"environment_trumps": "x"}),
                "`environment_trumps`: expected true or false, found a string".to_owned(),
            ),
            (json!({"rule": 1}), MALFORMED_RULE.to_owned()),
            (json!({"config_data": 1}), "`config_data`: expected a mapping, found a number".into()),
            (json!({"variables": []}), "`variables`: expected a mapping, found a list".to_owned()),
            (
                json!({"name": 1, "parent": null, "classes": [], "rule": "x"}),
                format!(
                    "{}; {}; {MALFORMED_RULE}; {map}",
                    text("name", "a number"),
                    text("parent", "null")
                ),
            ),
            (
                json!({"name": 1, "parent": "x", "classes": []}),
                format!("{}; {map}", text("name", "a number")),
            ),
        ];
        each_row(rows, |(more, expected)| {
            let error = read_group(&with(&more)).unwrap_err();
            assert_eq!(error.kind, RejectionKind::SchemaViolation);
            assert_eq!(error.details["error"], expected, "{more}");
            assert!(error.message.ends_with(&expected), "{}", error.message);
            assert_eq!(error.details["submitted"], with(&more));
        });
        for key in ["id", "description", "environment", "environment_trumps", "rule"]
            .into_iter()
            .chain(["config_data", "variables"])
        {
            assert!(read_group(&with(&json!({key: null}))).is_ok(), "{key}");
        }
        let parent = read_group(&with(&json!({"parent": "x"}))).unwrap_err();
        assert_eq!(parent.kind, RejectionKind::MalformedUuid);
    }

    /// Returns a valid body with other fields.
    fn with(more: &Value) -> Value {
        let mut body = json!({"name": "a", "parent": GroupId::ROOT, "classes": {}});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        body
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
