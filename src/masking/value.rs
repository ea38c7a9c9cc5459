//! Masking values.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::masks::{DataRoot, Masks, OpenPaths, RootMasks};
use crate::model::{MASKED, Node, Path, Segment};

impl Masks {
    /// Returns a node as it may be stored and shown.
    pub fn node<'n>(&self, node: &'n Node) -> Cow<'n, Node> {
        let is_covered = |root, map| {
            let masks = self.root(root);
            masks.covers_some(&masks.start(), map)
        };
        if !is_covered(DataRoot::Facts, &node.fact) && !is_covered(DataRoot::Trusted, &node.trusted)
        {
            return Cow::Borrowed(node);
        }
        let mut masked = node.clone();
        self.mask_node(&mut masked);
        Cow::Owned(masked)
    }

    /// Masks the values of a node.
    pub fn mask_node(&self, node: &mut Node) {
        self.mask_map(DataRoot::Facts, &mut node.fact, &mut |_| {});
        self.mask_map(DataRoot::Trusted, &mut node.trusted, &mut |_| {});
    }

    /// Masks the values of facts or trusted data; passes on the keys and indexes that lead to each.
    pub fn mask_map(
        &self,
        root: DataRoot,
        map: &mut Map<String, Value>,
        each: &mut dyn FnMut(&[String]),
    ) {
        let masks = self.root(root);
        let place = masks.start();
        masks.mask_map(&place, map, &mut Vec::new(), each);
    }

    /// Masks a value of which it is not known where in a node it belongs: more than necessary.
    pub fn mask_anywhere(&self, value: &mut Value) {
        let masks = self.anywhere();
        masks.mask_value(&masks.start(), value, &mut Vec::new(), &mut |_| {});
        self.mask_texts(value);
    }

    /// Masks the strings that may be facts as text.
    fn mask_texts(&self, value: &mut Value) {
        match value {
            Value::String(text) if self.may_cover_text(text) => *value = MASKED.into(),
            Value::Object(map) => {
                for field in map.values_mut() {
                    self.mask_texts(field);
                }
            }
            Value::Array(elements) => {
                for element in elements {
                    self.mask_texts(element);
                }
            }
            _ => {}
        }
    }

    /// Masks the values that rules saw in an explanation: wherever a `path` stands beside a `value`.
    pub fn mask_explanation(&self, explanation: &mut Value) {
        match explanation {
            Value::Object(fields) => {
                if let (Some(Value::Array(path)), Some(_)) =
                    (fields.get("path"), fields.get("value"))
                {
                    let path = path.clone();
                    if let Some(value) = fields.get_mut("value") {
                        self.mask_seen(&path, value);
                    }
                    return;
                }
                for field in fields.values_mut() {
                    self.mask_explanation(field);
                }
            }
            Value::Array(elements) => {
                for element in elements {
                    self.mask_explanation(element);
                }
            }
            _ => {}
        }
    }

    /// Masks what a rule saw at a path, as an explanation document writes it.
    fn mask_seen(&self, path: &[Value], value: &mut Value) {
        let Some((root, steps)) = path.split_first() else { return };
        let Some(root) = root.as_str() else { return };
        self.mask_below(root, steps.iter().filter_map(Value::as_str), value);
    }

    /// Masks what a rule saw at a path.
    pub fn mask_at(&self, path: &Path, value: &mut Value) {
        let Path::Segments(segments) = path else { return };
        let Some((Segment::Key(root), steps)) = segments.split_first() else { return };
        // The elements of a list have its path.
        let keys = steps.iter().filter_map(|step| match step {
            Segment::Key(key) => Some(key.as_ref()),
            Segment::Index(_) => None,
        });
        self.mask_below(root, keys, value);
    }

    fn mask_below<'k>(&self, root: &str, keys: impl Iterator<Item = &'k str>, value: &mut Value) {
        let masks = match root {
            "fact" | "facts" => self.root(DataRoot::Facts),
            "trusted" => self.root(DataRoot::Trusted),
            _ => return,
        };
        match masks.lead(keys) {
            Some(place) => masks.mask_value(&place, value, &mut Vec::new(), &mut |_| {}),
            None if value.is_null() => {}
            None => *value = MASKED.into(),
        }
    }
}

impl RootMasks {
    fn covers_some(&self, place: &OpenPaths<'_>, map: &Map<String, Value>) -> bool {
        if self.is_clear(place) {
            return false;
        }
        map.iter().any(|(key, value)| match self.enter(place, key) {
            // Nothing and null are the same to rules.
            None => !value.is_null(),
            Some(place) => self.covers_some_of(&place, value),
        })
    }

    fn covers_some_of(&self, place: &OpenPaths<'_>, value: &Value) -> bool {
        match value {
            Value::Object(map) => self.covers_some(place, map),
            Value::Array(elements) => elements.iter().any(|it| self.covers_some_of(place, it)),
            _ => false,
        }
    }

    fn mask_map(
        &self,
        place: &OpenPaths<'_>,
        map: &mut Map<String, Value>,
        path: &mut Vec<String>,
        each: &mut dyn FnMut(&[String]),
    ) {
        if self.is_clear(place) {
            return;
        }
        for (key, value) in map.iter_mut() {
            path.push(key.clone());
            match self.enter(place, key) {
                Some(place) => self.mask_value(&place, value, path, each),
                None if value.is_null() => {}
                None => {
                    *value = MASKED.into();
                    each(path);
                }
            }
            path.pop();
        }
    }

    fn mask_value(
        &self,
        place: &OpenPaths<'_>,
        value: &mut Value,
        path: &mut Vec<String>,
        each: &mut dyn FnMut(&[String]),
    ) {
        match value {
            Value::Object(map) => self.mask_map(place, map, path, each),
            Value::Array(elements) => {
                for (index, element) in elements.iter_mut().enumerate() {
                    path.push(index.to_string());
                    self.mask_value(place, element, path, each);
                    path.pop();
                }
            }
            _ => {}
        }
    }
}
