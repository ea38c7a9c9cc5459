//! The state that a write is computed against.

use std::collections::BTreeMap;

use crate::diagnostic::Place;
use crate::hierarchy::Estate;
use crate::model::GroupId;
use crate::validation::Layout;

/// What stands at a path of the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A file, or whatever else has no files below it.
    File,
    /// A directory.
    Directory,
}

/// The state of the repository that a write is computed against.
pub struct WriteContext<'g> {
    /// The groups.
    pub estate: &'g Estate,
    /// Where each group is written.
    pub origins: &'g BTreeMap<GroupId, Place>,
    /// Which directory holds what.
    pub layout: &'g Layout,
    /// Returns the text of a file; none if there is none.
    pub read: &'g dyn Fn(&str) -> Option<String>,
    /// Returns the names in a directory, with what stands there; the top is the empty path.
    pub names: &'g dyn Fn(&str) -> Vec<(String, PathKind)>,
    /// Returns how often a group was edited; none if that is not known. Only asked where a client
    /// says what it read.
    pub serial: &'g dyn Fn(GroupId) -> Option<u64>,
}

impl std::fmt::Debug for WriteContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteContext").field("layout", self.layout).finish_non_exhaustive()
    }
}
