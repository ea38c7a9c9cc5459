//! Takes in a head of the branch: as a whole, or not at all.

use super::{AncestryGap, FetchedHead, Following, KnownAncestry, Outdated, ReconcileState};
use crate::git::ReadError;
use crate::reconcile::clock::Now;
use crate::reconcile::status::ObservedCommit;

/// Why a head is not taken in; nothing is changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::reconcile) enum NotAccepted {
    /// What was fetched is older than what answers.
    Outdated,
    /// The history that decides was not read yet.
    Unknown,
    /// The history that decides cannot be read.
    Unread(ReadError),
}

impl From<Outdated> for NotAccepted {
    fn from(Outdated: Outdated) -> Self {
        Self::Outdated
    }
}

impl ReconcileState {
    /// The branch was fetched, and is at a commit: decides whether the builder gets it. Returns whether there is a new
    /// candidate.
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if a write was published since the fetch began, or the history was not
    /// read or cannot be read.
    pub(in crate::reconcile) fn accept(
        &mut self,
        fetched: FetchedHead<'_>,
        following: &Following<'_>,
        now: Now,
    ) -> Result<bool, NotAccepted> {
        let mut next = self.clone();
        next.fetched(fetched, now)?;
        let is_new = next.follow(following, now)?;
        self.replace(next, following.ancestry)?;
        Ok(is_new)
    }

    /// The mirror is at a commit that an earlier run fetched: decides as well.
    ///
    /// # Errors
    ///
    /// As [`Self::accept`]; where the branch is is known all the same.
    pub(in crate::reconcile) fn accept_recovered(
        &mut self,
        observed: ObservedCommit,
        following: &Following<'_>,
        now: Now,
    ) -> Result<bool, NotAccepted> {
        self.recovered_head(observed);
        let mut next = self.clone();
        let is_new = next.follow(following, now)?;
        self.replace(next, following.ancestry)?;
        Ok(is_new)
    }

    /// Takes a state that was decided by a history, if that could be read.
    fn replace(&mut self, next: Self, ancestry: &KnownAncestry) -> Result<(), NotAccepted> {
        match ancestry.gap() {
            Some(AncestryGap::Unknown(_)) => Err(NotAccepted::Unknown),
            Some(AncestryGap::Unread(error)) => Err(NotAccepted::Unread(error)),
            None => {
                *self = next;
                Ok(())
            }
        }
    }
}
