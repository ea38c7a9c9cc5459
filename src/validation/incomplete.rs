//! Groups with errors of which something is not known, to tell what does not follow from the rest.

use std::collections::BTreeSet;

use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::GroupId;

/// The groups in the tree of which something is not known.
#[derive(Debug, Default)]
pub(super) struct IncompleteGroups {
    /// Those whose pinned nodes could not be read: their rules do not say which nodes their descendants can have.
    pub(super) pins: BTreeSet<GroupId>,
    /// Those that may have other classes and parameters.
    pub(super) classes: BTreeSet<GroupId>,
    /// Those that may set other values, of any sort.
    pub(super) values: BTreeSet<GroupId>,
    /// Those that may have another parent.
    pub(super) parents: BTreeSet<GroupId>,
}

/// How far up the tree values are followed.
const ANCESTORS: usize = 65;

impl IncompleteGroups {
    /// Returns whether all is known that a group inherits, up to what an ancestor sets.
    pub(super) fn know_values(
        &self,
        hierarchy: &Hierarchy,
        index: GroupIndex,
        ancestor: Option<GroupIndex>,
    ) -> bool {
        if self.values.is_empty() && self.parents.is_empty() {
            return true;
        }
        for it in hierarchy.lineage(index).take(ANCESTORS) {
            let id = &hierarchy.group(it).id;
            if it != index && self.values.contains(id) {
                return false;
            }
            if Some(it) == ancestor {
                return true;
            }
            if self.parents.contains(id) {
                return false;
            }
        }
        true
    }
}
