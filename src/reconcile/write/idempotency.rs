//! Requests that are sent again because their client got no answer.
//!
//! The journal has every write before it is pushed, and again when its client was answered. A write
//! that is only there once may be at the remote all the same: the connection broke, the client had
//! gone, or the daemon was killed. The same request again then gets the answer of the first, as long as what
//! that one wrote is in effect: else the client would take a change for made that was undone since.

use std::sync::Arc;

use jiff::SignedDuration;

use super::receipt::Deliveries;
use super::request::WriteRequest;
use crate::git::{ReadError, Repository};
use crate::model::CommitId;
use crate::reconcile::clock::Now;
use crate::reconcile::errors::StorageError;
use crate::reconcile::journal::{Event, PushedWrite};
use crate::reconcile::recorder::Recorder;

/// How long a request is known again; later it is a new one that says the same.
const REMEMBERED: SignedDuration = SignedDuration::from_hours(1);

/// Knows the writes whose clients got no answer.
pub(super) struct Idempotency {
    pub(super) recorder: Arc<Recorder>,
    pub(super) deliveries: Arc<Deliveries>,
}

impl Idempotency {
    /// Records what is about to be pushed.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not on disk: a write that is sent again would not be known.
    pub(super) fn record_pushing(&self, writes: Vec<PushedWrite>) -> Result<(), StorageError> {
        if writes.is_empty() {
            return Ok(());
        }
        self.recorder.record(Event::Pushing { writes })
    }

    /// Returns the write of the same client that is on the branch and unanswered, unless another
    /// request of the batch repeats it already. It may have been undone since.
    ///
    /// # Errors
    ///
    /// Returns an error if the history cannot be read now: the request would be applied twice.
    pub(super) fn repeated(
        &self,
        repository: &Repository,
        request: &WriteRequest,
        tip: CommitId,
        is_taken: impl Fn(CommitId) -> bool,
    ) -> Result<Option<PushedWrite>, ReadError> {
        for write in self.unanswered(request) {
            if !is_taken(write.commit) && repository.shows_ancestor(write.commit, tip)? {
                return Ok(Some(write));
            }
        }
        Ok(None)
    }

    /// Returns whether the same client sent a request before and got no answer, whether it is on the branch or not.
    pub(super) fn is_unanswered(&self, request: &WriteRequest) -> bool {
        !self.unanswered(request).is_empty()
    }

    fn unanswered(&self, request: &WriteRequest) -> Vec<PushedWrite> {
        let is_same = |it: &&PushedWrite| {
            it.fingerprint == request.fingerprint && !self.deliveries.contains(it.commit)
        };
        let mut journal = self.recorder.journal();
        let unanswered = journal.unanswered(REMEMBERED, Now::read());
        unanswered.into_iter().filter(is_same).cloned().collect()
    }

    /// Notes the commits whose clients have their answers.
    pub(super) fn note_delivered(&self, commits: &[CommitId]) {
        if commits.is_empty() {
            return;
        }
        self.recorder.note(Event::Answered { commits: commits.to_vec() });
        // From now on the journal knows.
        self.deliveries.forget(commits);
    }
}
