//! What operators may ask for: to keep a commit answering, and to follow the branch again.
//!
//! Each is on disk before it takes effect and before the operator is told.
#![expect(clippy::disallowed_methods, reason = "activations are measured by the clock")]

use std::time::Instant;

use super::activate::Admitted;
use super::admission::Trust;
use super::build::Outcome;
use super::clock::Now;
use super::controller::{Controller, LookupError};
use super::journal::Event;
use super::state::{Cause, Kept};
use super::storage::StorageError;
use crate::model::CommitId;

impl Controller {
    /// Keeps a commit answering until [`Controller::resume`]. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit, if it may not answer, or if the pin cannot be
    /// written to disk; then nothing is changed.
    pub fn pin(&self, revision: &str, actor: Option<String>) -> Result<CommitId, LookupError> {
        let repository = self.repository().map_err(|it| LookupError::Unreadable(it.to_string()))?;
        let commit = repository.resolve(revision)?;
        let signer = self.admit(&repository, commit, Trust::Begin)?;
        let snapshot = match self.outcome(&repository, commit)? {
            Outcome::Rejected(rejected) => return Err(LookupError::Rejected(rejected)),
            Outcome::Valid(snapshot) => snapshot,
        };
        let lock = self.activating();
        self.record(Event::Pinned { commit, actor })?;
        self.state().set_pinned(Some(commit));
        let admitted = Admitted { snapshot, signer };
        let kept =
            self.activate_within(&lock, &repository, admitted, Cause::Pinned, Instant::now());
        if kept == Err(Kept::Stopping) {
            // It is on disk, and answers after the restart.
            tracing::info!(%commit, "the daemon stops before the pinned commit answers");
        }
        tracing::info!(%commit, "an operator pinned the commit");
        Ok(commit)
    }

    /// Follows the branch again, also where it left its history. Where its head is not valid, the
    /// newest valid commit behind it answers.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written to disk; then nothing is changed.
    pub fn resume(&self, actor: Option<String>) -> Result<(), StorageError> {
        let lock = self.activating();
        let accepts = self.state().head();
        self.record(Event::Resumed { actor, accepts })?;
        self.state().resumed(Now::read());
        drop(lock);
        self.notify();
        tracing::info!("an operator has the branch followed again");
        Ok(())
    }
}
