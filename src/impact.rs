//! What a change of groups does to nodes.
//!
//! Two states of a repository are compared over a set of nodes. [`GroupChange`]s are what people
//! wrote; a [`NodeChange`] is what one node gets differently, with the group changes that cause it.
//! Nodes that no changed group matches, before or after, are not classified at all: everything
//! that they match is the same in both.

mod groups;
mod nodes;
mod report;

use std::collections::BTreeMap;

use crate::diagnostic::Place;
use crate::hierarchy::Estate;
use crate::model::GroupId;

pub use groups::{GroupChange, How, Part, group_changes};
pub use nodes::{
    Change, Comparison, ConflictChange, Difference, GroupName, NodeChange, ValueChange, ValueKind,
};
pub use report::{Entry, Impact};

/// One of the two states that are compared.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// What it says.
    pub estate: &'a Estate,
    /// Where each group is written.
    pub origins: &'a BTreeMap<GroupId, Place>,
}

#[cfg(test)]
mod tests;
