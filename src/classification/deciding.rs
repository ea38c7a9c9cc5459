//! Which leaves decide the environment of a node.

use crate::model::Group;

/// The leaves that decide the environment: those that trump, or all where none does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deciding {
    is_trumped: bool,
}

impl Deciding {
    pub(super) fn among<'g>(leaves: impl IntoIterator<Item = &'g Group>) -> Self {
        Self { is_trumped: leaves.into_iter().any(|it| it.environment_trumps) }
    }

    pub(super) fn has(self, leaf: &Group) -> bool {
        leaf.environment_trumps == self.is_trumped
    }
}
