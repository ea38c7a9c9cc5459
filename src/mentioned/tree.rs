//! The mentioned paths as a tree.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::model::Segment;

/// What rules look at in a value, beside what is mentioned below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Want {
    /// Nothing.
    #[default]
    Below,
    /// Its text, as an element of a list that may contain a text.
    Element,
    /// Its text, or its elements if it is a list.
    Value,
    /// All of it, since it is put into values.
    Whole,
}

/// A place in the mentioned paths.
#[derive(Clone, Debug, Default)]
pub(super) struct PathTree {
    /// What is wanted of the value where a path ends, else [`Want::Below`].
    pub(super) want: Want,
    /// Sorted.
    pub(super) keys: Vec<(Arc<str>, Self)>,
    /// What kinds of keys there are, a bit each.
    kinds: u64,
    /// Sorted.
    pub(super) elements: Vec<(u64, Self)>,
}

/// Below it, no path is mentioned.
pub(super) static NOTHING: PathTree =
    PathTree { want: Want::Below, keys: Vec::new(), kinds: 0, elements: Vec::new() };

/// Returns a bit by the length and the first byte of a key: most keys of a node are of a kind that no rule
/// mentions.
fn kind(key: &str) -> u64 {
    let first = key.bytes().next().map_or(0, usize::from);
    1 << ((key.len() ^ first.wrapping_mul(5)) % 64)
}

impl PathTree {
    /// Adds a path; all paths come in order.
    pub(super) fn add(&mut self, rest: &[Segment], want: Want) {
        match rest.split_first() {
            None => self.want = want,
            Some((Segment::Key(key), rest)) => {
                self.kinds |= kind(key);
                if self.keys.last().is_none_or(|(last, _)| last != key) {
                    self.keys.push((Arc::clone(key), Self::default()));
                }
                if let Some((_, tree)) = self.keys.last_mut() {
                    tree.add(rest, want);
                }
            }
            Some((Segment::Index(index), rest)) => {
                if self.elements.last().is_none_or(|(last, _)| last != index) {
                    self.elements.push((*index, Self::default()));
                }
                if let Some((_, tree)) = self.elements.last_mut() {
                    tree.add(rest, want);
                }
            }
        }
    }

    /// Returns which of the keys a key is.
    pub(super) fn key(&self, key: &str) -> Option<usize> {
        if self.kinds & kind(key) == 0 {
            return None;
        }
        self.keys.binary_search_by(|(it, _)| it.as_ref().cmp(key)).ok()
    }

    /// Returns what is below each element of a list in turn, and what is wanted of the element; `None` for
    /// elements of which nothing is. It ends where nothing more is wanted.
    pub(super) fn each_element(&self, list: Want) -> impl Iterator<Item = Option<(&Self, Want)>> {
        let least = if list < Want::Value { Want::Below } else { Want::Element };
        let mut mentioned = self.elements.iter().peekable();
        let mut index = 0;
        std::iter::from_fn(move || {
            if least == Want::Below && mentioned.peek().is_none() {
                return None;
            }
            let tree = mentioned.next_if(|(it, _)| *it == index).map(|(_, tree)| tree);
            index += 1;
            Some(match tree {
                Some(tree) => Some((tree, tree.want.max(least))),
                None => (least != Want::Below).then_some((&NOTHING, least)),
            })
        })
    }
}

impl Want {
    /// Keeps a string, number or boolean.
    pub(super) fn scalar(self, value: impl FnOnce() -> Value) -> Option<Value> {
        (self != Self::Below).then(value)
    }

    /// Keeps an object with what is kept of its values.
    pub(super) fn object(self, kept: Map<String, Value>) -> Option<Value> {
        (self != Self::Below || !kept.is_empty()).then_some(Value::Object(kept))
    }
}

/// What is kept of the elements of a list.
#[derive(Default)]
pub(super) struct KeptElements {
    kept: Vec<Value>,
    /// How many elements have passed.
    passed: usize,
}

impl KeptElements {
    /// Passes an element, of which nothing may be kept.
    pub(super) fn pass(&mut self, element: Option<Value>) {
        if let Some(element) = element {
            // It keeps its place.
            self.kept.resize(self.passed, Value::Null);
            self.kept.push(element);
        }
        self.passed += 1;
    }

    /// Returns what is kept of the list.
    pub(super) fn list(self, want: Want) -> Option<Value> {
        (want != Want::Below || !self.kept.is_empty()).then_some(Value::Array(self.kept))
    }
}
