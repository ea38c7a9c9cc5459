//! Finding the value that a path leads to.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::error::EvaluationError;
use crate::model::{MASKED, Node, Path, Segment, is_masked, may_be_left_out};

/// What a comparison sees of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Actual<'a> {
    /// Nothing, or null.
    Missing,
    /// A string.
    Text(&'a str),
    /// A number or boolean, as its JSON text.
    Scalar(&'a str),
    /// A list.
    List(&'a [Value]),
    /// An object.
    Object,
}

impl<'a> Actual<'a> {
    /// Returns what a comparison sees of a value.
    pub fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Missing,
            Value::String(text) => Self::Text(text),
            Value::Number(number) => Self::Scalar(number.as_str()),
            Value::Bool(true) => Self::Scalar("true"),
            Value::Bool(false) => Self::Scalar("false"),
            Value::Array(elements) => Self::List(elements),
            Value::Object(_) => Self::Object,
        }
    }
}

enum Lookup<'a> {
    Name(&'a str),
    Whole(&'a Map<String, Value>),
    Value(&'a Value),
    /// The node may have a value there that was not stored.
    Withheld,
}

/// Returns what a comparison sees at the path.
///
/// # Errors
///
/// Returns an error if the value there was not stored.
pub fn actual<'a>(path: &Path, node: &'a Node) -> Result<Actual<'a>, EvaluationError> {
    Ok(match find(path, node) {
        None => Actual::Missing,
        Some(Lookup::Name(name)) => Actual::Text(name),
        Some(Lookup::Whole(_)) => Actual::Object,
        Some(Lookup::Value(value)) => Actual::of(value),
        Some(Lookup::Withheld) => {
            return Err(EvaluationError::Withheld { path: path.to_string().into() });
        }
    })
}

/// Returns the value at the path, as explanations show it.
pub fn lookup<'a>(path: &Path, node: &'a Node) -> Option<Cow<'a, Value>> {
    Some(match find(path, node)? {
        Lookup::Name(name) => Cow::Owned(Value::String(name.to_owned())),
        Lookup::Whole(map) => Cow::Owned(Value::Object(map.clone())),
        Lookup::Value(value) => Cow::Borrowed(value),
        Lookup::Withheld => Cow::Owned(Value::from(MASKED)),
    })
}

fn find<'a>(path: &Path, node: &'a Node) -> Option<Lookup<'a>> {
    let segments = match path {
        Path::Name => return Some(Lookup::Name(&node.name)),
        Path::Bare(_) => return None,
        Path::Segments(segments) => segments,
    };
    let (root, rest) = segments.split_first()?;
    let map = match root {
        Segment::Key(root) => match root.as_ref() {
            "fact" | "facts" => &node.fact,
            "trusted" => &node.trusted,
            "name" if rest.is_empty() => return Some(Lookup::Name(&node.name)),
            _ => return None,
        },
        Segment::Index(_) => return None,
    };
    let path = rest;
    let Some((first, rest)) = rest.split_first() else { return Some(Lookup::Whole(map)) };
    let Segment::Key(first) = first else { return None };
    let mut found = map.get(first.as_ref());
    for segment in rest {
        let Some(value) = found.filter(|it| !is_masked(it)) else { break };
        found = step(value, segment);
    }
    match found {
        Some(value) if is_masked(value) => Some(Lookup::Withheld),
        Some(value) => Some(Lookup::Value(value)),
        None => may_be_left_out(map, path).then_some(Lookup::Withheld),
    }
}

/// Takes one step into a value: a key leads into objects only, an index into lists only.
pub(super) fn step<'a>(value: &'a Value, segment: &Segment) -> Option<&'a Value> {
    match segment {
        Segment::Key(key) => value.as_object()?.get(key.as_ref()),
        Segment::Index(index) => value.as_array()?.get(usize::try_from(*index).ok()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::STORED_PATHS;
    use crate::rule;
    use crate::table::each_row;
    use serde_json::json;

    #[test]
    fn follows_keys_and_indexes_by_exact_name() {
        let node = Node {
            name: "web1".to_owned(),
            fact: json!({"a": {"b": [1, {"c": "x"}]}, "a.b": "dotted", "f": false, "n": null})
                .as_object()
                .unwrap()
                .clone(),
            trusted: json!({"certname": "web1"}).as_object().unwrap().clone(),
        };
        let rows = [
            (json!("name"), Some(json!("web1"))),
            (json!(["name"]), Some(json!("web1"))),
            (json!(["name", "x"]), None),
            (json!("clientcert"), None),
            (json!(["fact", "a", "b", 0]), Some(json!(1))),
            (json!(["facts", "a", "b", 1, "c"]), Some(json!("x"))),
            (json!(["fact", "a", "b", "0"]), None),
            (json!(["fact", "a", 0]), None),
            (json!(["fact", 0]), None),
            (json!(["fact", "a.b"]), Some(json!("dotted"))),
            (json!(["fact", "A"]), None),
            (json!(["fact", "f"]), Some(json!(false))),
            (json!(["fact", "n"]), Some(json!(null))),
            (json!(["fact", "n", "x"]), None),
            (json!(["trusted", "certname"]), Some(json!("web1"))),
            (json!(["trusted"]), Some(json!({"certname": "web1"}))),
        ];
        each_row(rows, |(path, expected)| {
            let rule = rule::read(&json!(["=", path, "x"])).unwrap();
            let crate::model::Condition::Test(test) = rule else { panic!("a test") };
            assert_eq!(lookup(&test.path, &node).map(Cow::into_owned), expected, "{path}");
        });
    }

    #[test]
    fn what_was_not_stored_is_neither_there_nor_missing() {
        let node =
            |fact: Value| Node { fact: fact.as_object().unwrap().clone(), ..Node::named("web1") };
        let masked =
            json!({"ec2": MASKED, "os": {"name": "x", "key": MASKED}, "l": [{"k": MASKED}]});
        let chosen = json!({STORED_PATHS: [["os", "name"], ["l", 0]], "os": {"name": "x"}});
        let rows = [
            (&masked, json!(["fact", "os", "name"]), Ok(Actual::Text("x"))),
            (&masked, json!(["fact", "os", "absent"]), Ok(Actual::Missing)),
            (&masked, json!(["fact", "os"]), Ok(Actual::Object)),
            (&masked, json!(["fact", "ec2"]), Err("ec2")),
            (&masked, json!(["fact", "ec2", "region"]), Err("ec2.region")),
            (&masked, json!(["fact", "ec2", "tags", "a"]), Err("ec2.tags.a")),
            (&masked, json!(["fact", "os", "key"]), Err("os.key")),
            (&masked, json!(["fact", "l", 0, "k"]), Err("l[0].k")),
            (&chosen, json!(["fact", "os", "name"]), Ok(Actual::Text("x"))),
            (&chosen, json!(["fact", "l", 0]), Ok(Actual::Missing)),
            (&chosen, json!(["fact", "l", 1]), Err("l[1]")),
            (&chosen, json!(["fact", "os", "family"]), Err("os.family")),
            (&chosen, json!(["fact", "kernel"]), Err("kernel")),
            (&chosen, json!("name"), Ok(Actual::Text("web1"))),
            (&chosen, json!(["trusted", "certname"]), Ok(Actual::Missing)),
        ];
        each_row(rows, |(fact, path, expected)| {
            let rule = rule::read(&json!(["=", path, "x"])).unwrap();
            let crate::model::Condition::Test(test) = rule else { panic!("a test") };
            let node = node(fact.clone());
            let seen = actual(&test.path, &node).map_err(|error| error.to_string());
            match (seen, expected) {
                (Ok(seen), Ok(expected)) => assert_eq!(seen, expected),
                (Err(error), Err(path)) => {
                    assert!(error.starts_with(&format!("`{path}` is not stored")), "{error}");
                }
                (seen, expected) => panic!("{seen:?} is not {expected:?}"),
            }
        });
    }
}
