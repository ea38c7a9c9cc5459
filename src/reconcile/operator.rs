//! What operators ask for: to keep a commit live, and to follow the branch again.
//!
//! Each is on disk before it takes effect and before the operator gets an answer.
#![expect(clippy::disallowed_methods, reason = "activations are measured by the clock")]

use std::sync::Arc;
use std::time::Instant;

use super::activator::{Activation, Activator, AdmittedSnapshot};
use super::attribution::Attribution;
use super::clock::Now;
use super::errors::{LookupError, StorageError};
use super::journal::Event;
use super::recorder::Recorder;
use super::shared_state::SharedState;
use super::snapshot_store::SnapshotStore;
use super::source::Source;
use super::state::{Cause, Withheld};
use super::trigger::Trigger;
use super::verifier::{Trust, Verifier};
use crate::git::Repository;
use crate::model::CommitId;

/// Does what operators ask for.
#[derive(Debug)]
pub(super) struct Operator {
    pub(super) source: Arc<Source>,
    pub(super) state: Arc<SharedState>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) verifier: Arc<Verifier>,
    pub(super) store: Arc<SnapshotStore>,
    pub(super) activator: Arc<Activator>,
}

impl Operator {
    /// Makes a commit live until [`Operator::resume`]. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit, if it may not be live, or if the pin cannot be
    /// written to disk; then nothing is changed.
    pub(super) fn pin(&self, revision: &str, by: Attribution) -> Result<CommitId, LookupError> {
        let repository = self.source.repository()?;
        let commit = self.store.resolve(&repository, revision)?;
        let (snapshot, activation) = self.admitted(&repository, commit)?;
        tracing::info!(%commit, actor = by.actor, reason = by.reason, "an operator pins the commit");
        self.recorder.record(Event::Pinned { commit, by })?;
        self.recorder.save_pin();
        let pin = self.recorder.journal().pinned();
        if let Some(pin) = pin {
            self.state.lock().pin_now(pin, Now::read());
        }
        let activated = activation.activate(&repository, snapshot, Cause::Pinned, Instant::now());
        if activated == Err(Withheld::Stopping) {
            // It is on disk, and live after the restart.
            tracing::info!(%commit, "the daemon stops before the pinned commit is live");
        }
        Ok(commit)
    }

    /// Verifies and builds a commit, and keeps others from being made live. Where keys change meanwhile, it is
    /// verified again.
    fn admitted(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<(AdmittedSnapshot, Activation<'_>), LookupError> {
        loop {
            let verified = self.verifier.verify(repository, commit, Trust::Begin)?;
            let snapshot = self.store.build(repository, &verified)?.into_result()?;
            let activation = self.activator.begin();
            if let Ok(admitted) = activation.admit(snapshot) {
                return Ok((admitted, activation));
            }
        }
    }

    /// Follows the branch again, also where it left its history. Where its head is not valid, the
    /// newest valid commit behind it is made live.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written to disk; then nothing is changed.
    pub(super) fn resume(&self, by: Attribution) -> Result<(), StorageError> {
        let activation = self.activator.begin();
        let accepts = self.state.lock().head();
        let (actor, reason) = (by.actor.clone(), by.reason.clone());
        self.recorder.record(Event::Resumed { by, accepts })?;
        self.recorder.save_pin();
        self.state.lock().resumed(Now::read());
        drop(activation);
        self.state.notify();
        tracing::info!(actor, reason, "an operator resumed following the branch");
        Ok(())
    }

    /// Requests a fetch. It is recorded, and goes on where the disk does not take that.
    pub(super) fn request_fetch(&self, by: Attribution) {
        tracing::info!(actor = by.actor, reason = by.reason, "an operator requested a fetch");
        self.recorder.note(Event::FetchRequested { by });
        if let Some(mirror) = self.source.mirror() {
            mirror.retry_others();
        }
        self.state.request_fetch(Trigger::Manual);
    }

    /// Records that an operator had a node forgotten.
    pub(super) fn note_forgotten(&self, node: String, actor: Option<String>) {
        tracing::info!(node, actor, "an operator had the node forgotten");
        self.recorder.note(Event::NodeForgotten { node, actor });
    }
}
