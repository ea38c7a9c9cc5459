//! Making a commit live: the one place where that happens, whatever asks for it.
//!
//! Polls, webhooks, writes, pins, resumes and the start all come here. Under one lock the state decides
//! whether the commit may be live now (a pin, a held rewrite or a newer head may have come while it
//! was built or pushed), and then the snapshots are swapped. What was verified by keys that changed since is
//! verified again first.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};

use super::clock::Now;
use super::journal::Event;
use super::live::LiveSnapshots;
use super::recorder::Recorder;
use super::shared_state::SharedState;
use super::snapshot_store::VerifiedSnapshot;
use super::source::Source;
use super::state::{Cause, Withheld};
use super::status::ActiveCommit;
use super::trigger::Trigger;
use super::verifier::Verifier;
use crate::diagnostic::Diagnostic;
use crate::git::{CommitInfo, Repository};
use crate::telemetry::Metrics;

/// Makes commits live.
#[derive(Debug)]
pub(super) struct Activator {
    source: Arc<Source>,
    state: Arc<SharedState>,
    recorder: Arc<Recorder>,
    verifier: Arc<Verifier>,
    live: Arc<LiveSnapshots>,
    metrics: Arc<Metrics>,
    lock: Mutex<()>,
}

/// Held while the live commit is changed, or what decides about it.
pub(super) struct Activation<'a> {
    activator: &'a Activator,
    _lock: MutexGuard<'a, ()>,
}

/// A snapshot whose commit was verified by the keys that are in force. Only [`Activation::admit`] makes one.
pub(super) struct AdmittedSnapshot(VerifiedSnapshot);

impl Activator {
    pub(super) fn new(
        source: Arc<Source>,
        state: Arc<SharedState>,
        recorder: Arc<Recorder>,
        verifier: Arc<Verifier>,
        live: Arc<LiveSnapshots>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { source, state, recorder, verifier, live, metrics, lock: Mutex::default() }
    }

    /// Waits until no other commit is made live, and keeps it so.
    pub(super) fn begin(&self) -> Activation<'_> {
        Activation { activator: self, _lock: self.lock.lock() }
    }

    /// Makes a commit live, unless something withholds it.
    ///
    /// # Errors
    ///
    /// Returns what withholds it.
    pub(super) fn activate(
        &self,
        repository: &Repository,
        snapshot: VerifiedSnapshot,
        cause: Cause,
        since: Instant,
    ) -> Result<(), Withheld> {
        let activation = self.begin();
        activation.activate(repository, activation.admit(snapshot)?, cause, since)
    }

    /// Swaps the snapshots.
    ///
    /// The journal knows first: which commit was live at a time must be known even if the power fails a
    /// moment later. The mirror notes it last.
    fn swap(
        &self,
        repository: &Repository,
        snapshot: VerifiedSnapshot,
        trigger: Trigger,
        since: Instant,
    ) {
        let (snapshot, signer) = snapshot.into_parts();
        let commit = snapshot.commit;
        let groups = snapshot.estate.hierarchy.len();
        if let Some(signer) = &signer
            && !self.recorder.journal().has_verified(commit)
        {
            self.recorder.note(Event::Verified { commit, signer: signer.to_string() });
        }
        let live = self.recorder.journal().live();
        if live != Some(commit) {
            self.recorder.note(Event::Activated { commit, trigger });
        }
        let activated_at = self.recorder.journal().activations().next_back().map(|(time, _)| time);
        count_findings(&self.metrics, &snapshot.warnings);
        self.live.set_stable(snapshot);
        self.metrics.count_activation(trigger.as_str(), since.elapsed());
        self.source.note_live(commit);
        let info = repository.commit(commit).ok();
        let active = info.map(|CommitInfo { id, author, time, subject }| ActiveCommit {
            commit: id,
            author,
            time,
            subject,
            activated_at: activated_at.unwrap_or_else(|| Now::read().wall),
            groups,
            trigger,
        });
        self.state.lock().activated(commit, active, signer);
        self.state.notify();
        tracing::info!(%commit, groups, trigger = trigger.as_str(), "the commit is live");
    }
}

impl Activation<'_> {
    /// Admits a snapshot by its keys.
    ///
    /// # Errors
    ///
    /// Returns an error if a file of keys changed since the commit was verified: the signer may not be allowed any more.
    pub(super) fn admit(&self, snapshot: VerifiedSnapshot) -> Result<AdmittedSnapshot, Withheld> {
        if self.activator.verifier.are_current(snapshot.keys()) {
            return Ok(AdmittedSnapshot(snapshot));
        }
        let commit = snapshot.commit();
        tracing::info!(%commit, "keys changed since the commit was verified: it is verified again");
        Err(Withheld::KeysChanged)
    }

    /// Makes a commit live, unless something withholds it.
    ///
    /// # Errors
    ///
    /// Returns what withholds it.
    pub(super) fn activate(
        &self,
        repository: &Repository,
        AdmittedSnapshot(snapshot): AdmittedSnapshot,
        cause: Cause,
        since: Instant,
    ) -> Result<(), Withheld> {
        let activator = self.activator;
        let commit = snapshot.commit();
        let allowed = activator.state.lock().may_activate(commit, cause, Now::read());
        match allowed {
            Ok(()) => activator.swap(repository, snapshot, cause.trigger(), since),
            Err(Withheld::Pinned(_) | Withheld::Held) => activator.recorder.note_held(commit),
            Err(
                Withheld::Superseded(_)
                | Withheld::Stopping
                | Withheld::Unread
                | Withheld::KeysChanged,
            ) => {}
        }
        allowed
    }
}

pub(super) fn count_findings(metrics: &Metrics, findings: &[Arc<Diagnostic>]) {
    for it in findings {
        metrics.count_finding(it.kind.as_str(), it.severity.as_str());
    }
}
