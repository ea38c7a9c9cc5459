//! Which groups match a node.

use super::ClassificationError;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::Node;
use crate::rule::{EvaluationError, Explained, evaluate, explain};

/// A group that matches, with its own rule explained.
#[derive(Clone, Debug)]
pub struct Match<'h> {
    /// The group.
    pub group: GroupIndex,
    /// Its own rule, every term evaluated.
    pub explained: Explained<'h>,
}

/// Returns the groups whose own rule, and the rule of every ancestor that has one, holds for the
/// node; parents first. A group without a rule matches nothing itself.
///
/// # Errors
///
/// Returns [`ClassificationError`] if it cannot be found out whether a group matches.
pub fn matches<'h>(
    hierarchy: &'h Hierarchy,
    node: &Node,
) -> Result<Vec<Match<'h>>, ClassificationError> {
    let mut found = Vec::new();
    let mut at = hierarchy.root();
    let mut rest = hierarchy.indexes();
    while let Some(index) = rest.find(|index| *index >= at) {
        let group = hierarchy.group(index);
        at = index;
        let Some(rule) = &group.rule else { continue };
        let fail = |cause: EvaluationError| ClassificationError {
            group: group.id,
            name: group.name.to_string(),
            cause,
        };
        if evaluate(rule, node).map_err(fail)? {
            found.push(Match { group: index, explained: explain(rule, node) });
        } else {
            // What does not match hides its descendants.
            at = hierarchy.end(index);
        }
    }
    Ok(found)
}
