//! Finding the value that a path leads to.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::model::{Node, Path, Segment};

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
}

/// Returns what a comparison sees at the path.
pub fn actual<'a>(path: &Path, node: &'a Node) -> Actual<'a> {
    match find(path, node) {
        None => Actual::Missing,
        Some(Lookup::Name(name)) => Actual::Text(name),
        Some(Lookup::Whole(_)) => Actual::Object,
        Some(Lookup::Value(value)) => Actual::of(value),
    }
}

/// Returns the value at the path, as explanations show it.
pub fn lookup<'a>(path: &Path, node: &'a Node) -> Option<Cow<'a, Value>> {
    Some(match find(path, node)? {
        Lookup::Name(name) => Cow::Owned(Value::String(name.to_owned())),
        Lookup::Whole(map) => Cow::Owned(Value::Object(map.clone())),
        Lookup::Value(value) => Cow::Borrowed(value),
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
    let Some((first, rest)) = rest.split_first() else { return Some(Lookup::Whole(map)) };
    let Segment::Key(first) = first else { return None };
    rest.iter().try_fold(map.get(first.as_ref())?, step).map(Lookup::Value)
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
}
