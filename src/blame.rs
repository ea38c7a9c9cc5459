//! Blame: after which commit of a branch each value of a node's answer first came out.
//!
//! The walk goes back from a commit along first parents, with the facts that the node has now. A commit
//! whose changes cannot concern the node is passed without being built, whether it is valid or not; where a
//! value ends, only a valid commit is named, since no other ever answered.

mod line;
mod walk;

pub use line::lines_of;
pub use walk::{BlamedBranch, Older, Origin, Walked, walk};

use crate::model::Node;
use crate::rule::evaluate;
use crate::validation::{FileKind, FileReading, GroupFile};

/// Returns whether what a file says can concern a node, so that a commit that adds, changes or removes the
/// file may change the node's answer.
///
/// Where the own rule of a group does not match, no descendant of it does either: neither its values nor its
/// place in the tree can concern the node. A file with errors counts as one that concerns every node.
pub fn concerns(reading: &FileReading, kind: FileKind, node: &Node) -> bool {
    match kind {
        FileKind::Settings => true,
        FileKind::Environment | FileKind::Tests => false,
        FileKind::Node => reading.node().is_none_or(|it| it == node.name),
        FileKind::Groups => {
            let may_match = |file: &GroupFile| {
                let rule = file.group.as_ref().and_then(|it| it.rule.as_deref());
                rule.is_none_or(|rule| evaluate(rule, node) != Ok(false))
            };
            reading.groups().is_empty() || reading.groups().iter().any(may_match)
        }
    }
}
