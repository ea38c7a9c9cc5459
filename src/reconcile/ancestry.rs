//! Which commits of a repository contain which, where it may be unreadable for a while.

use std::cell::OnceCell;

use super::state::Ancestry;
use crate::git::{ReadError, Repository};
use crate::model::CommitId;

/// The history of a repository. A commit that is missing or damaged shows no ancestors, as one that was live before the
/// mirror was lost.
pub(super) struct RepositoryAncestry<'r> {
    repository: &'r Repository,
    unread: OnceCell<ReadError>,
}

impl<'r> RepositoryAncestry<'r> {
    pub(super) fn of(repository: &'r Repository) -> Self {
        Self { repository, unread: OnceCell::new() }
    }
}

impl Ancestry for RepositoryAncestry<'_> {
    fn is_ancestor(&self, ancestor: CommitId, descendant: CommitId) -> bool {
        self.repository.shows_ancestor(ancestor, descendant).unwrap_or_else(|error| {
            self.unread.get_or_init(|| error);
            false
        })
    }

    fn unread(&self) -> Option<&ReadError> {
        self.unread.get()
    }
}
