//! Which mentioned facts differ between two states of a node.

use std::sync::Arc;

use serde_json::Value;

use super::known::is_withheld_in;
use super::paths::MentionedPaths;
use super::tree::{NOTHING, Want};
use crate::model::{Node, Path};
use crate::rule::lookup;

/// A fact, or an item of the trusted data, that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct FactDifference {
    /// Its path as people write it: `os.family`, `trusted.extensions.pp_role`.
    pub path: String,
    /// What it was; none if there was nothing that rules tell from nothing.
    pub before: Option<Value>,
    /// What it is.
    pub after: Option<Value>,
}

/// Returns the mentioned facts and trusted data that differ, as far as rules can tell: an object in a value
/// is shown as an empty one, unless it is put into values. Of what was withheld nothing is known.
pub fn differences(before: &Node, after: &Node, paths: &MentionedPaths) -> Vec<FactDifference> {
    let difference = |segments: &Arc<_>| {
        let path = Path::Segments(Arc::clone(segments));
        let want = if paths.whole.contains(segments) { Want::Whole } else { Want::Value };
        let seen = |node| lookup(&path, node).and_then(|it| NOTHING.keep(&it, want));
        let (before, after) = (seen(before), seen(after));
        if before.iter().chain(&after).any(is_withheld_in) {
            return None;
        }
        (before != after).then(|| FactDifference { path: path.to_string(), before, after })
    };
    paths.paths.iter().filter_map(difference).collect()
}
