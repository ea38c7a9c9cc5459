//! The facts of a request that values mention, as they stand in its body.

use std::sync::Arc;

use serde_json::Value;

use super::paths::{ValuePath, ValuePathId};
use crate::model::{Map, Node, Segment};

/// The facts and trusted data of a request that values mention. They are parsed when they are put into a value:
/// most answers need few of them or none.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceivedFacts<'b> {
    /// None where values mention nothing: all threads count the users of these, which takes them time.
    paths: Option<Arc<[ValuePath]>>,
    /// The JSON text at each path, by number.
    texts: Vec<Option<&'b str>>,
}

impl<'b> ReceivedFacts<'b> {
    /// Returns the facts of a request of which nothing is read yet.
    pub(super) fn none_of(paths: &Arc<[ValuePath]>) -> Self {
        match paths.len() {
            0 => Self::default(),
            count => Self { paths: Some(Arc::clone(paths)), texts: vec![None; count] },
        }
    }

    /// Notes what is at a path.
    pub(super) fn put(&mut self, path: ValuePathId, text: Option<&'b str>) {
        if let Some(place) = self.texts.get_mut(path as usize) {
            *place = text;
        }
    }

    /// Returns a node that has these facts and no others; `None` if one cannot be parsed.
    pub(super) fn node(&self, name: &str) -> Option<Node> {
        let mut node = Node::named(name);
        for (path, text) in self.paths.iter().flat_map(|it| it.iter()).zip(&self.texts) {
            let (Some(text), Some((Segment::Key(root), keys))) = (text, path.split_first()) else {
                continue;
            };
            let map = if root.as_ref() == "fact" { &mut node.fact } else { &mut node.trusted };
            insert(map, keys, serde_json::from_str(text).ok()?);
        }
        Some(node)
    }
}

/// Puts a value where keys lead. Null counts as nothing.
fn insert(map: &mut Map<String, Value>, keys: &[Segment], value: Value) {
    match keys {
        _ if value.is_null() => {}
        [Segment::Key(key)] => {
            map.insert(key.as_ref().to_owned(), value);
        }
        [Segment::Key(key), rest @ ..] => {
            let below = map.entry(key.as_ref()).or_insert_with(|| Map::new().into());
            if let Value::Object(below) = below {
                insert(below, rest, value);
            }
        }
        _ => {}
    }
}
