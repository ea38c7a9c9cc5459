//! Keeping what is mentioned of values.

use serde_json::{Map, Value};

use super::tree::{KeptElements, PathTree, Want};
use crate::model::{STORED_PATHS, is_masked};

impl PathTree {
    pub(super) fn keep_map(&self, map: &Map<String, Value>) -> Map<String, Value> {
        let kept = self.keys.iter().filter_map(|(key, tree)| {
            let kept = tree.keep(map.get(key.as_ref())?, tree.want)?;
            Some((key.as_ref().to_owned(), kept))
        });
        let mut kept: Map<String, Value> = kept.collect();
        if let Some(stored) = map.get(STORED_PATHS) {
            kept.insert(STORED_PATHS.to_owned(), stored.clone());
        }
        kept
    }

    pub(super) fn keep(&self, value: &Value, want: Want) -> Option<Value> {
        match value {
            Value::Null => None,
            _ if want == Want::Whole => Some(value.clone()),
            // Else it would look as if nothing was there.
            Value::String(_) if is_masked(value) => Some(value.clone()),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => want.scalar(|| value.clone()),
            Value::Object(map) => want.object(self.keep_map(map)),
            Value::Array(elements) => {
                let mut kept = KeptElements::default();
                for (element, wanted) in elements.iter().zip(self.each_element(want)) {
                    kept.pass(wanted.and_then(|(tree, want)| tree.keep(element, want)));
                }
                kept.list(want)
            }
        }
    }
}
