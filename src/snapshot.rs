//! Everything compiled from one commit; it never changes.

use std::collections::BTreeMap;

use crate::classification::{ClassificationError, Explanation, classify};
use crate::diagnostic::{Diagnostic, Place};
use crate::hierarchy::Estate;
use crate::model::{CommitId, GroupId, Node};

/// The classifier of one commit.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The commit.
    pub commit: CommitId,
    /// Its groups, individual classifications and catalogues.
    pub estate: Estate,
    /// Where each group is written.
    pub origins: BTreeMap<GroupId, Place>,
    /// The warnings that validation had.
    pub warnings: Vec<Diagnostic>,
}

impl Snapshot {
    /// Classifies a node.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be found out whether a group matches.
    pub fn classify<'s>(&'s self, node: &'s Node) -> Result<Explanation<'s>, ClassificationError> {
        classify(&self.estate, node)
    }
}
