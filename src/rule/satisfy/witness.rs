//! A node with given values at given paths.

use serde_json::{Map, Value};

use crate::model::{Node, Segment};
use crate::rule::lookup::step;

/// The longest list that is made for the sake of one element.
const LONGEST: usize = 256;

/// A value at its place.
pub(super) struct Placed<'w> {
    pub(super) way: &'w [Segment],
    pub(super) value: Value,
    /// How many places of a list are left to what is said of them one by one.
    pub(super) before: u64,
}

/// Makes the node; none if the values cannot stand in one.
pub(super) fn node(mut values: Vec<Placed<'_>>) -> Option<Node> {
    let mut whole = Value::Object(Map::new());
    let mut name = None;
    // Lists come last: they go behind the elements that have a place.
    values.sort_by_key(|it| it.value.is_array());
    for Placed { way, value, before } in values {
        match (way, value) {
            ([_only_the_name], value) => name = value.as_str().map(str::to_owned),
            (way, Value::Array(elements)) => {
                let mut before = usize::try_from(before).ok().filter(|it| *it <= LONGEST)?;
                for element in elements {
                    let mut behind = way.to_vec();
                    let length = length(&whole, way);
                    before = before.max(length);
                    behind.push(Segment::Index(before as u64));
                    put(&mut whole, &behind, element)?;
                    before += 1;
                }
            }
            (way, value) => put(&mut whole, way, value)?,
        }
    }
    let mut part = |key: &str| match whole.get_mut(key).map(Value::take) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    };
    let name = name.unwrap_or_else(|| Node::EXAMPLE.to_owned());
    let (fact, mut trusted) = (part("fact"), part("trusted"));
    trusted.insert("certname".to_owned(), name.clone().into());
    Some(Node { name, fact, trusted })
}

/// Returns how long the list at a place is so far.
fn length(whole: &Value, way: &[Segment]) -> usize {
    let found = way.iter().try_fold(whole, step);
    found.and_then(Value::as_array).map_or(0, Vec::len)
}

fn put(into: &mut Value, way: &[Segment], value: Value) -> Option<()> {
    let Some((segment, rest)) = way.split_first() else {
        return match into {
            Value::Null => {
                *into = value;
                Some(())
            }
            _ => None,
        };
    };
    let next = match segment {
        Segment::Key(key) => {
            if into.is_null() {
                *into = Value::Object(Map::new());
            }
            into.as_object_mut()?.entry(key.as_ref()).or_insert(Value::Null)
        }
        Segment::Index(index) => {
            if into.is_null() {
                *into = Value::Array(Vec::new());
            }
            let list = into.as_array_mut()?;
            let index = usize::try_from(*index).ok().filter(|it| *it < LONGEST)?;
            if list.len() <= index {
                list.resize(index + 1, Value::Null);
            }
            list.get_mut(index)?
        }
    };
    put(next, rest, value)
}
