//! Where the groups of one hierarchy stand in another.

use std::sync::Arc;

use super::{GroupIndex, Hierarchy};

/// Where the groups of one hierarchy stand in another that has groups with their ids.
#[derive(Debug)]
pub struct Renumbering {
    /// By the number before.
    after: Box<[Option<GroupIndex>]>,
    /// By the number after.
    before: Box<[Option<GroupIndex>]>,
}

impl Renumbering {
    /// Returns where a group stands after; `None` if it is gone.
    pub(crate) fn after(&self, before: GroupIndex) -> Option<GroupIndex> {
        self.after.get(before.number()).copied().flatten()
    }

    /// Returns where a group stood before; `None` if it is new.
    pub(crate) fn before(&self, after: GroupIndex) -> Option<GroupIndex> {
        self.before.get(after.number()).copied().flatten()
    }
}

impl Hierarchy {
    /// Returns where the groups stand in another hierarchy.
    pub(crate) fn renumbering(&self, other: &Self) -> Renumbering {
        if self.has_tree_of(other) {
            let same: Box<[Option<GroupIndex>]> = self.indexes().map(Some).collect();
            return Renumbering { after: same.clone(), before: same };
        }
        let after: Box<[Option<GroupIndex>]> = self.groups().map(|it| other.find(it.id)).collect();
        let mut before: Box<[Option<GroupIndex>]> = vec![None; other.len()].into();
        for (index, after) in self.indexes().zip(&after) {
            if let Some(slot) = after.and_then(|it| before.get_mut(it.number())) {
                *slot = Some(index);
            }
        }
        Renumbering { after, before }
    }

    /// Returns whether this was made of another hierarchy, or that one of this, and every group has
    /// kept its place.
    pub(crate) fn has_tree_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shape, &other.shape)
    }
}
