//! A group by name.

use crate::model::{Group, GroupId};

/// A group by name.
#[derive(Debug)]
pub(super) struct GroupLink {
    pub(super) id: GroupId,
    pub(super) name: String,
}

impl GroupLink {
    /// Returns the link to a group.
    pub(super) fn to(group: &Group) -> Self {
        Self { id: group.id, name: group.name.to_string() }
    }
}
