//! What a node has where a reference leads.

use serde_json::Value;

use super::reference::FactReference;
use crate::model::{Map, Node, Segment, is_masked, is_stored, is_stored_whole};

/// What a node has where a reference leads.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ReferencedValue<'n> {
    /// Nothing, or null.
    Missing,
    /// A value.
    Value(&'n Value),
    /// A pair of an object.
    Pair(&'n str, &'n Value),
    /// The key of a pair.
    Key(&'n str),
    /// The node may have a value there that was not stored.
    Withheld,
}

impl FactReference {
    pub(super) fn resolve<'n>(&self, node: &'n Node) -> ReferencedValue<'n> {
        let [Segment::Key(root), rest @ ..] = &*self.segments else {
            return ReferencedValue::Missing;
        };
        let map = match root.as_ref() {
            "fact" => &node.fact,
            "trusted" => &node.trusted,
            _ => return ReferencedValue::Missing,
        };
        let [Segment::Key(first), steps @ ..] = rest else { return ReferencedValue::Missing };
        let mut found =
            map.get(first.as_ref()).map_or(ReferencedValue::Missing, ReferencedValue::Value);
        for segment in steps {
            found = match found {
                // What is behind the mask is not known.
                ReferencedValue::Value(value) if is_masked(value) => {
                    return ReferencedValue::Withheld;
                }
                found => step(found, segment),
            };
        }
        checked(found, map, rest)
    }
}

/// Takes one step: a key leads into objects only, a number into lists, and to the pairs of objects.
fn step<'n>(found: ReferencedValue<'n>, segment: &Segment) -> ReferencedValue<'n> {
    let number = |index: u64| usize::try_from(index).ok();
    match (found, segment) {
        (ReferencedValue::Value(Value::Object(map)), Segment::Key(key)) => {
            map.get(key.as_ref()).map_or(ReferencedValue::Missing, ReferencedValue::Value)
        }
        (ReferencedValue::Value(Value::Object(map)), Segment::Index(index)) => {
            let pair = number(*index).and_then(|index| map.iter().nth(index));
            pair.map_or(ReferencedValue::Missing, |(key, value)| ReferencedValue::Pair(key, value))
        }
        (ReferencedValue::Value(Value::Array(elements)), Segment::Index(index)) => {
            let element = number(*index).and_then(|index| elements.get(index));
            element.map_or(ReferencedValue::Missing, ReferencedValue::Value)
        }
        (ReferencedValue::Pair(key, _), Segment::Index(0)) => ReferencedValue::Key(key),
        (ReferencedValue::Pair(_, value), Segment::Index(1)) => ReferencedValue::Value(value),
        _ => ReferencedValue::Missing,
    }
}

/// Finds out whether all of a value was stored that decides what comes out.
fn checked<'n>(
    found: ReferencedValue<'n>,
    map: &'n Map<String, Value>,
    path: &[Segment],
) -> ReferencedValue<'n> {
    let keys = path.iter().take_while(|it| matches!(it, Segment::Key(_))).count();
    let (keys, numbers) = path.split_at_checked(keys).unwrap_or((path, &[]));
    let is_known = match &found {
        _ if is_stored_whole(map, keys) => true,
        _ if !numbers.is_empty() => false,
        ReferencedValue::Missing => is_stored(map, keys),
        ReferencedValue::Value(value) => !matches!(value, Value::Object(_) | Value::Array(_)),
        ReferencedValue::Key(_) => true,
        ReferencedValue::Pair(..) | ReferencedValue::Withheld => false,
    };
    match found {
        _ if !is_known => ReferencedValue::Withheld,
        ReferencedValue::Value(Value::Null) => ReferencedValue::Missing,
        ReferencedValue::Value(value) | ReferencedValue::Pair(_, value) if has_mask(value) => {
            ReferencedValue::Withheld
        }
        found => found,
    }
}

/// Returns whether something in a value is masked.
fn has_mask(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(has_mask),
        Value::Object(fields) => fields.values().any(has_mask),
        value => is_masked(value),
    }
}
