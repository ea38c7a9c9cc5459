//! Making the commit live that was so before the restart: at the start, and when keys allow it later.
#![expect(clippy::disallowed_methods, reason = "activations are measured by the clock")]

use std::time::Instant;

use super::activator::Activator;
use super::outcome::Outcome;
use super::snapshot_store::SnapshotStore;
use super::state::{Cause, RecoveryFault, Withheld};
use super::status::FailedCommit;
use super::verifier::{Trust, Verifier};
use crate::git::Repository;
use crate::model::CommitId;

/// Verifies, builds and activates the commit that was live before the restart.
pub(super) struct LiveRecovery<'r> {
    pub(super) verifier: &'r Verifier,
    pub(super) store: &'r SnapshotStore,
    pub(super) activator: &'r Activator,
}

impl LiveRecovery<'_> {
    /// Makes a commit live. Where keys change meanwhile, it is verified again.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be live.
    pub(super) fn run(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<(), RecoveryFault> {
        loop {
            match self.activate(repository, commit)? {
                Ok(()) => return Ok(()),
                Err(Withheld::KeysChanged) => {}
                Err(withheld) => return Err(RecoveryFault::Other(withheld.to_string())),
            }
        }
    }

    /// Makes a commit live unless something withholds it, or returns why it cannot be live.
    fn activate(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<Result<(), Withheld>, RecoveryFault> {
        let verified = self.verifier.verify(repository, commit, Trust::Begin)?;
        match self.store.build(repository, &verified) {
            Ok(Outcome::Valid(snapshot)) => {
                Ok(self.activator.activate(repository, snapshot, Cause::Recovered, Instant::now()))
            }
            Ok(Outcome::Rejected(rejected)) => {
                let failed = FailedCommit::by_findings(&rejected);
                let reason = format!("it is not valid any more: {}", failed.in_short());
                Err(RecoveryFault::Other(reason))
            }
            Err(error) => Err(RecoveryFault::Other(format!("it cannot be read: {error}"))),
        }
    }
}
