//! A node with given values at given paths.

use serde_json::{Map, Value};

use crate::model::{Node, Segment};

/// The longest list that is made for the sake of one element.
const LONGEST: usize = 256;

/// Makes the node; none if the values cannot stand in one.
pub(super) fn node<'w>(values: impl Iterator<Item = (&'w [Segment], Value)>) -> Option<Node> {
    let mut whole = Value::Object(Map::new());
    let mut name = None;
    for (way, value) in values {
        match way {
            [_only_the_name] => name = value.as_str().map(str::to_owned),
            way => put(&mut whole, way, value)?,
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
