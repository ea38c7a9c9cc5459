//! What stands in stored facts for those that were not stored.
//!
//! A value that a mask covers is replaced by [`MASKED`]. Where only some paths were stored, the entry
//! [`STORED_PATHS`] lists them. So a reader of stored facts never takes a value that was withheld for one
//! that the node does not have.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::Segment;

/// What stands in place of a masked value.
pub const MASKED: &str = "[masked]";

/// The key of the paths that were stored, each as a list of keys and indexes, beside the facts or the trusted
/// data that they lead into. Without this key all are stored.
pub const STORED_PATHS: &str = "[stored paths]";

/// The text of facts, or of trusted data, of which nothing was stored.
pub const LEFT_OUT: &str = r#"{"[stored paths]":[]}"#;

/// Returns whether a value was masked.
pub fn is_masked(value: &Value) -> bool {
    matches!(value, Value::String(text) if text == MASKED)
}

/// Returns whether there is nothing because nothing was stored.
pub fn is_left_out(map: &Map<String, Value>) -> bool {
    map.len() == 1 && map.get(STORED_PATHS).and_then(Value::as_array).is_some_and(Vec::is_empty)
}

/// Returns whether the value at a path where nothing is may have been left out.
pub fn may_be_left_out(map: &Map<String, Value>, path: &[Segment]) -> bool {
    let is_it = |stored: &Value| {
        let Some(steps) = stored.as_array() else { return false };
        steps.len() == path.len()
            && steps.iter().zip(path).all(|(step, segment)| is_step(step, segment))
    };
    map.get(STORED_PATHS).is_some_and(|it| !it.as_array().is_some_and(|it| it.iter().any(is_it)))
}

/// Returns whether nothing that is missing at a path was left out.
pub fn is_stored(map: &Map<String, Value>, path: &[Segment]) -> bool {
    !may_be_left_out(map, path)
}

/// Returns the path of a value that is stored as a whole, whatever is in it.
///
/// In the list of stored paths, `true` stands behind it; the path itself stands there, too.
pub fn whole_path(path: &[Value]) -> Value {
    path.iter().cloned().chain([Value::Bool(true)]).collect()
}

/// Returns whether the value at a path was stored as a whole.
pub fn is_stored_whole(map: &Map<String, Value>, path: &[Segment]) -> bool {
    let is_it = |stored: &Value| {
        let Some((Value::Bool(true), steps)) = stored.as_array().and_then(|it| it.split_last())
        else {
            return false;
        };
        steps.len() <= path.len()
            && steps.iter().zip(path).all(|(step, segment)| is_step(step, segment))
    };
    let stored = map.get(STORED_PATHS);
    stored.is_none_or(|it| it.as_array().is_some_and(|it| it.iter().any(is_it)))
}

/// Returns those of some paths, in the form of the list of stored paths, at which nothing was left out of a map.
pub fn stored_of(map: &Map<String, Value>, paths: Vec<Value>) -> Vec<Value> {
    let Some(stored) = map.get(STORED_PATHS) else { return paths };
    let (mut known, mut whole) = (HashSet::new(), HashSet::new());
    for path in stored.as_array().into_iter().flatten().filter_map(Value::as_array) {
        match path.split_last() {
            Some((Value::Bool(true), steps)) => whole.insert(steps),
            _ => known.insert(path.as_slice()),
        };
    }
    let is_in_whole = |steps: &[Value]| {
        (0..=steps.len()).any(|it| steps.get(..it).is_some_and(|it| whole.contains(it)))
    };
    let is_stored = |path: &Value| match path.as_array().map(Vec::as_slice) {
        Some([steps @ .., Value::Bool(true)]) => is_in_whole(steps),
        Some(steps) => known.contains(steps) || is_in_whole(steps),
        None => false,
    };
    paths.into_iter().filter(is_stored).collect()
}

fn is_step(step: &Value, segment: &Segment) -> bool {
    match segment {
        Segment::Key(key) => step.as_str() == Some(key),
        Segment::Index(index) => step.as_u64() == Some(*index),
    }
}
