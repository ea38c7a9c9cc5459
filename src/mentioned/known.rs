//! Whether the mentioned facts of a stored node are known.

use serde_json::{Map, Value};

use super::paths::MentionedPaths;
use crate::model::{Node, is_masked};
use crate::rule::lookup;

impl MentionedPaths {
    /// Returns whether nothing that is mentioned was withheld when a node was stored.
    pub fn are_known_of(&self, node: &Node) -> bool {
        let kept = self.keep(node);
        let is_masked_in = [&kept.fact, &kept.trusted].into_iter().any(is_masked_in);
        // What was left out is shown like what was masked.
        let is_withheld = |path| lookup(&path, &kept).is_some_and(|it| is_masked(&it));
        !is_masked_in && !self.paths().any(is_withheld)
    }
}

fn is_masked_in(facts: &Map<String, Value>) -> bool {
    facts.values().any(is_withheld_in)
}

/// Returns whether a value, or a part of it, was withheld when the node was stored.
pub(super) fn is_withheld_in(value: &Value) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(is_withheld_in),
        Value::Object(fields) => is_masked_in(fields),
        value => is_masked(value),
    }
}
