//! What a request sends in place of a value that was not stored.
//!
//! The marks that stand for such values belong to the store. Where facts that come from outside have them, they were forged, or
//! copied out of an answer of the daemon. Stored as they are, one node would be unknown to every rule that reads the place,
//! and so would the list of a group be. They are stored as other texts, and stand for themselves.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use serde_json::{Map, Value};

use super::{MASKED, Node, STORED_PATHS};

/// The texts that are stored for them.
const MASKED_AS_SENT: &str = "[[masked]]";
const PATHS_AS_SENT: &str = "[[stored paths]]";

/// Finds the marks in JSON, and what may be one that is written with escapes.
static MARKS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new([MASKED, STORED_PATHS, "\\u00"]).ok());

/// Returns facts and trusted data from outside, the texts of objects, without the marks of the store.
pub fn texts_as_sent<'t>(fact: &'t str, trusted: &'t str) -> [Cow<'t, str>; 2] {
    [text_as_sent(fact), text_as_sent(trusted)]
}

fn text_as_sent(text: &str) -> Cow<'_, str> {
    if MARKS.as_ref().is_some_and(|it| !it.is_match(text)) {
        return Cow::Borrowed(text);
    }
    // What cannot be read has no values.
    let Ok(mut map) = serde_json::from_str::<Map<String, Value>>(text) else {
        return Cow::Borrowed(text);
    };
    if replace_in_root(&mut map) {
        Cow::Owned(Value::Object(map).to_string())
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns a node whose facts come from outside without the marks of the store.
pub fn node_as_sent(node: &Node) -> Cow<'_, Node> {
    if !has_mark(&node.fact) && !has_mark(&node.trusted) {
        return Cow::Borrowed(node);
    }
    let mut node = node.clone();
    remove_marks(&mut node);
    Cow::Owned(node)
}

/// Removes the marks of the store from a node whose facts come from outside.
pub fn remove_marks(node: &mut Node) {
    replace_in_root(&mut node.fact);
    replace_in_root(&mut node.trusted);
}

/// Returns whether facts or trusted data have a mark of the store.
pub fn has_mark(map: &Map<String, Value>) -> bool {
    fn is_in(value: &Value) -> bool {
        match value {
            Value::String(text) => text == MASKED,
            Value::Array(elements) => elements.iter().any(is_in),
            Value::Object(fields) => fields.values().any(is_in),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    map.contains_key(STORED_PATHS) || map.values().any(is_in)
}

/// Replaces the marks in facts or trusted data, and returns whether there was one.
fn replace_in_root(map: &mut Map<String, Value>) -> bool {
    let paths = map.shift_remove(STORED_PATHS);
    let mut is_replaced = paths.is_some();
    if let Some(paths) = paths {
        map.insert(PATHS_AS_SENT.to_owned(), paths);
    }
    for value in map.values_mut() {
        is_replaced |= replace(value);
    }
    is_replaced
}

fn replace(value: &mut Value) -> bool {
    match value {
        Value::String(text) if text == MASKED => {
            MASKED_AS_SENT.clone_into(text);
            true
        }
        Value::Array(elements) => elements.iter_mut().fold(false, |all, it| replace(it) | all),
        Value::Object(fields) => fields.values_mut().fold(false, |all, it| replace(it) | all),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::table::each_row;

    #[test]
    fn marks_from_outside_are_texts_like_others() {
        let rows = [
            (r#"{"a": "x", "b": [1, {"c": null}]}"#, None),
            (r#"{"a": "[masked] "}"#, None),
            (r#"{"a": {"[stored paths]": []}, "b": "\u00e9"}"#, None),
            (r#"{"[masked]": 1}"#, None),
            (r#"{"a": "[masked]"}"#, Some(json!({"a": "[[masked]]"}))),
            (r#"{"a": "\u005bmasked]"}"#, Some(json!({"a": "[[masked]]"}))),
            (r#"{"a": [[{"b": "[masked]"}], 1]}"#, Some(json!({"a": [[{"b": "[[masked]]"}], 1]}))),
            (
                r#"{"[stored paths]": [["a"]], "a": 1}"#,
                Some(json!({"[[stored paths]]": [["a"]], "a": 1})),
            ),
            (
                r#"{"\u005bstored paths]": [], "a": 1}"#,
                Some(json!({"[[stored paths]]": [], "a": 1})),
            ),
        ];
        each_row(rows, |(text, replaced)| {
            let written = text_as_sent(text);
            let fact: Map<String, Value> = serde_json::from_str(text).unwrap();
            let node = Node { fact: fact.clone(), trusted: fact, ..Node::named("n".to_owned()) };
            let sent = node_as_sent(&node);
            match replaced {
                None => {
                    assert!(matches!(written, Cow::Borrowed(_)));
                    assert!(matches!(sent, Cow::Borrowed(_)));
                }
                Some(replaced) => {
                    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), replaced);
                    assert_eq!(Value::Object(sent.fact.clone()), replaced);
                    assert_eq!(Value::Object(sent.trusted.clone()), replaced);
                }
            }
        });
        assert_eq!(text_as_sent("[masked]"), "[masked]");
    }
}
