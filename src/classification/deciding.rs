//! Which leaves decide the environment of a node.

use crate::hierarchy::Inherited;

/// The leaves that decide the environment: those that trump, or all where none does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deciding {
    is_trumped: bool,
}

impl Deciding {
    pub(super) fn among<'i, 'e: 'i>(leaves: impl IntoIterator<Item = &'i Inherited<'e>>) -> Self {
        Self { is_trumped: leaves.into_iter().any(|it| it.environment_trumps) }
    }

    pub(super) fn has(self, leaf: &Inherited<'_>) -> bool {
        leaf.environment_trumps == self.is_trumped
    }
}
