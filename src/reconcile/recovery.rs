//! The start: what was live before is live again, and what was known is known again.
#![expect(clippy::disallowed_methods, reason = "activations are measured by the clock")]

use std::cell::OnceCell;
use std::time::Instant;

use super::activator::Activator;
use super::clock::Now;
use super::fetcher::Fetcher;
use super::journal::Event;
use super::live_recovery::LiveRecovery;
use super::recorder::{Recorder, RecoveredPin};
use super::shared_state::SharedState;
use super::snapshot_store::SnapshotStore;
use super::source::Source;
use super::state::{RecoveryFault, SourceKind};
use super::status::ObservedCommit;
use super::verifier::Verifier;
use crate::git::{CommitPresence, Repository};
use crate::model::CommitId;

/// Recovers what was known before the restart, without the remote.
pub(super) struct Recovery<'r> {
    pub(super) source: &'r Source,
    pub(super) state: &'r SharedState,
    pub(super) recorder: &'r Recorder,
    pub(super) verifier: &'r Verifier,
    pub(super) store: &'r SnapshotStore,
    pub(super) activator: &'r Activator,
    pub(super) fetcher: &'r Fetcher,
}

/// What a mirror has at the start.
struct Recovered<'m> {
    mirror: &'m Repository,
    /// Whether it has all commits that its refs lead to. All of them are read for that: once.
    is_complete: OnceCell<bool>,
}

impl<'m> Recovered<'m> {
    fn of(mirror: &'m Repository) -> Self {
        Self { mirror, is_complete: OnceCell::new() }
    }

    /// Returns whether it lacks a commit that it may have had. Where it has all commits that its refs lead to, a fetch
    /// brings as much as a mirror that is fetched again has.
    fn may_have_lost(&self, commit: CommitId) -> bool {
        match self.mirror.presence(commit) {
            CommitPresence::Present => false,
            CommitPresence::Absent => {
                !self.is_complete.get_or_init(|| self.mirror.has_all_commits())
            }
            CommitPresence::Unknown => true,
        }
    }
}

impl Recovery<'_> {
    /// Makes the commit live that was live before the restart, if the mirror has it, and follows the
    /// head that was fetched last.
    pub(super) fn run(&self) {
        self.recover_contact();
        let repository = self.source.repository();
        let recovered = repository.as_ref().map(Recovered::of);
        let pinned = self.recover_pin(recovered.as_ref().ok());
        let last = pinned.or_else(|| self.recorder.journal().live()).or_else(|| self.noted_live());
        let recovered = match recovered {
            Ok(recovered) => recovered,
            Err(error) => {
                if let Some(commit) = last {
                    let reason = format!("the repository cannot be read: {error}");
                    self.note_unrecovered(commit, RecoveryFault::Other(reason));
                }
                return;
            }
        };
        if let Some(commit) = last
            && let Err(fault) = self.recover_live(&recovered, commit)
        {
            self.note_unrecovered(commit, fault);
        }
        // Also where no commit is live: the head may be valid, and the remote out of reach.
        if self.source.kind() == SourceKind::Remote
            && let Some(observed) = self.observed_last(recovered.mirror)
        {
            self.fetcher.follow_recovered(recovered.mirror, observed);
        }
    }

    /// Returns the commit that was pinned before the restart. A mirror that may have lost it is damaged: then everything is
    /// fetched again, and what becomes of a pin that the journal lost is decided after that.
    fn recover_pin(&self, recovered: Option<&Recovered<'_>>) -> Option<CommitId> {
        let is_remote = self.source.kind() == SourceKind::Remote;
        let repository = recovered.map(|it| it.mirror);
        let find = |commit| repository.map_or(CommitPresence::Unknown, |it| it.presence(commit));
        let recorded = self.recorder.recovered_pin(|commit| match find(commit) {
            CommitPresence::Absent if is_remote => CommitPresence::Unknown,
            found => found,
        });
        let pin = {
            let mut state = self.state.lock();
            match recorded {
                RecoveredPin::Settled(pin) => state.set_pinned(pin),
                RecoveredPin::Unsettled(pin) => {
                    tracing::error!(
                        commit = %pin.commit,
                        "the journal lost the pin, which stays until it is known whether the repository has its commit"
                    );
                    state.set_unsettled_pin(pin);
                }
            }
            state.pinned()?
        };
        // The first fetch of an empty mirror brings everything anyway.
        let has_lost = |it: &Recovered<'_>| !it.mirror.is_bare_of_refs() && it.may_have_lost(pin);
        if is_remote && recovered.is_some_and(has_lost) {
            let message = format!("the mirror lacks the pinned commit {pin}");
            self.state.lock().note_damage(message);
        }
        Some(pin)
    }

    /// Returns the live commit that the mirror names, where the journal names none.
    fn noted_live(&self) -> Option<CommitId> {
        let commit = self.source.noted_live()?;
        tracing::error!(
            %commit,
            "the journal does not say which commit was live before the restart: it is taken from the mirror, and \
             `?at=` knows no times before now"
        );
        Some(commit)
    }

    /// Counts on from when the branch was last seen.
    fn recover_contact(&self) {
        let now = Now::read();
        if let Some(time) = self.recorder.last_contact(now) {
            self.state.lock().recovered_contact(time, now);
        }
    }

    /// Keeps for the status why the commit that was live before is not.
    fn note_unrecovered(&self, commit: CommitId, fault: RecoveryFault) {
        tracing::error!(%commit, reason = %fault, "the commit that was live before the restart is not live now");
        let mut state = self.state.lock();
        if let RecoveryFault::Signature(fault) = &fault {
            state.recovery_failed(commit, fault.clone(), Instant::now());
        }
        state.note_unrecovered(commit, fault);
    }

    /// Makes the commit live that was so before, or returns why it cannot be.
    fn recover_live(
        &self,
        recovered: &Recovered<'_>,
        commit: CommitId,
    ) -> Result<(), RecoveryFault> {
        let repository = recovered.mirror;
        let is_remote = self.source.kind() == SourceKind::Remote;
        // Building it would find damage in a mirror that has none.
        if is_remote
            && repository.presence(commit) == CommitPresence::Absent
            && !recovered.may_have_lost(commit)
        {
            return Err(RecoveryFault::Other("it is not in the mirror".to_owned()));
        }
        let Self { verifier, store, activator, .. } = *self;
        LiveRecovery { verifier, store, activator }.run(repository, commit)
    }

    /// Returns the head that the mirror was at last, if the journal knows it, with when it was last seen there.
    fn observed_last(&self, repository: &Repository) -> Option<ObservedCommit> {
        let head = repository.resolve("HEAD").ok()?;
        let journal = self.recorder.journal();
        let when = journal.records().iter().rev().find(|it| match &it.event {
            Event::Fetched { commit }
            | Event::Activated { commit, .. }
            | Event::Held { commit } => *commit == head,
            // A write that is held, such as by a pin, was neither fetched nor activated.
            Event::Pushing { writes } => writes.iter().any(|it| it.commit == head),
            _ => false,
        });
        let known = when?.time;
        let last_contact = self.state.lock().last_contact_time();
        Some(ObservedCommit { commit: head, fetched_at: last_contact.unwrap_or(known) })
    }
}
