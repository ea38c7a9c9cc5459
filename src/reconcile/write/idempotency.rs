//! Requests that are sent again because their client was not told what became of them.
//!
//! The journal has every write before it is pushed, and again when its client was told. What is
//! only there once may be at the remote all the same: the connection broke, the client had gone, or
//! the daemon was killed. Whoever sends the same again is then answered as the first time.

use jiff::SignedDuration;

use super::{Applied, WriteRequest, Writer};
use crate::git::Repository;
use crate::model::CommitId;
use crate::reconcile::clock::Now;
use crate::reconcile::journal::{Event, PushedWrite};
use crate::reconcile::storage::StorageError;

/// How long a request is known again; later it is a new one that says the same.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(1);

impl Writer {
    /// Notes what is about to be pushed.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not on disk: a write that is sent again would not be known.
    pub(super) fn note_pushing(&self, applied: &[Applied]) -> Result<(), StorageError> {
        let writes: Vec<PushedWrite> = applied
            .iter()
            .filter(|it| it.told_of == Some(it.snapshot.commit))
            .map(|it| PushedWrite {
                fingerprint: it.job.request.fingerprint.clone(),
                commit: it.snapshot.commit,
                answer: it.changeset.answer.clone(),
            })
            .collect();
        if writes.is_empty() {
            return Ok(());
        }
        self.controller.record(Event::Pushing { writes })
    }

    /// Returns the write of the same client that is on the branch and of which it was not told.
    pub(super) fn repeated(
        &self,
        repository: &Repository,
        request: &WriteRequest,
        tip: CommitId,
        applied: &[Applied],
    ) -> Option<PushedWrite> {
        let unanswered = self.controller.journal().unanswered(REMEMBERED, Now::read());
        unanswered.into_iter().find(|it| {
            it.fingerprint == request.fingerprint
                && !self.desk.tells_of(it.commit)
                && !applied.iter().any(|other| other.told_of == Some(it.commit))
                && repository.is_ancestor(it.commit, tip).unwrap_or(false)
        })
    }
}
