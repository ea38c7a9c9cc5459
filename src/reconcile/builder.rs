//! The second stage: verifies, builds and activates the newest commit that the fetcher found.
#![expect(clippy::disallowed_methods, reason = "ages are measured by the clock")]

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use rayon::ThreadPool;

use super::activator::{Activator, count_findings};
use super::journal::{Event, Stage};
use super::live_recovery::LiveRecovery;
use super::outcome::{BuildError, Outcome, Rejected};
use super::recorder::Recorder;
use super::refetch::refetch_if_due;
use super::shared_state::SharedState;
use super::snapshot_store::{SnapshotStore, VerifiedSnapshot};
use super::source::Source;
use super::state::{BuildJob, Cause, ReconcileState, SourceKind, Withheld, reason_of};
use super::status::{FailedCommit, Reason};
use super::supervise::supervised;
use super::trigger::Trigger;
use super::verifier::{FallbackSearch, Trust, VerifiedCommit, Verifier};
use crate::git::{ReadError, Repository, SignatureFault};
use crate::model::CommitId;
use crate::priority;
use crate::telemetry::{BuildOutcome, Metrics};

/// The threads that build while agents are answered. None if the system gives none.
static BUILDERS: LazyLock<Option<ThreadPool>> =
    LazyLock::new(|| priority::yielding_threads("build"));

/// Decides about the newest commit.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) source: Arc<Source>,
    pub(super) state: Arc<SharedState>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) verifier: Arc<Verifier>,
    pub(super) store: Arc<SnapshotStore>,
    pub(super) activator: Arc<Activator>,
    pub(super) metrics: Arc<Metrics>,
}

impl Builder {
    /// Builds candidates until the daemon stops.
    pub(super) fn run(&self) {
        loop {
            let has_work = |it: &ReconcileState| it.has_pending() || it.has_recovery();
            if self.state.wait_while(|it| !it.stopping && !has_work(it)).stopping {
                return;
            }
            let build = || {
                supervised("builder", || {
                    self.build_candidate();
                    self.recover_live();
                })
            };
            // Agents wait for the first commit that is live.
            let answers = self.state.lock().active.is_some();
            let built = match answers.then(|| BUILDERS.as_ref()) {
                None => build(),
                Some(Some(pool)) => pool.install(build),
                Some(None) => {
                    priority::yield_to_requests();
                    build()
                }
            };
            if built.is_none() {
                self.reject_panicked();
            }
        }
    }

    /// Verifies, builds and activates the candidate that waits, if one does.
    pub(super) fn build_candidate(&self) {
        let Some(job) = self.state.lock().take_build() else { return };
        let began = Instant::now();
        let repository = match self.source.repository() {
            Ok(repository) => repository,
            Err(error) => {
                let failed = FailedCommit::as_a_whole(job.commit, Stage::Load, &error);
                return self.reject(failed, Reason::CorruptObjects);
            }
        };
        let keys = self.verifier.keys();
        match self.verifier.verify_by(&keys, &repository, job.commit, Trust::Begin) {
            Ok(commit) => self.build(&repository, job, &commit, began),
            // Damage says nothing of signatures.
            Err(SignatureFault::UnreadableCommit { source, .. }) => {
                self.metrics.count_build(BuildOutcome::Error, began.elapsed());
                self.refetch(job.commit, &source, |it| self.can_verify(it, job.commit));
            }
            Err(fault) => {
                self.metrics.count_build(BuildOutcome::Rejected, began.elapsed());
                // Of a commit whose keys cannot be read nothing is known: older ones must not take its place.
                let is_undecided = matches!(fault, SignatureFault::UnreadableKeys { .. });
                self.reject_signature(job.commit, fault);
                match is_undecided {
                    true => self.verifier.note_fallback(FallbackSearch::Ended(keys)),
                    false => self.fall_back_if_resumed(&repository, job.commit),
                }
            }
        }
    }

    /// Makes the commit live that was so before the restart, if keys that changed since allow it and none is live.
    fn recover_live(&self) {
        let Some(commit) = self.state.lock().take_recovery() else { return };
        let Ok(repository) = self.source.repository() else { return };
        let (verifier, store, activator) = (&self.verifier, &self.store, &self.activator);
        let recovery = LiveRecovery { verifier, store, activator };
        if let Err(fault) = recovery.run(&repository, commit) {
            tracing::error!(%commit, reason = %fault, "the commit that was live before the restart is not live now");
            self.state.lock().note_unrecovered(commit, fault);
            self.state.notify();
        }
    }

    fn build(
        &self,
        repository: &Repository,
        BuildJob { commit, trigger, since }: BuildJob,
        verified: &VerifiedCommit,
        began: Instant,
    ) {
        if let Some(signer) = verified.signer() {
            tracing::info!(%commit, %signer, "the signature is valid");
        }
        let is_wanted = || self.state.lock().is_wanted(commit);
        match self.store.build_while(repository, verified, &is_wanted) {
            Ok(Outcome::Valid(snapshot)) => {
                let elapsed = began.elapsed();
                if let Some(built) = self.activate(repository, snapshot, trigger, since) {
                    self.metrics.count_build(built, elapsed);
                }
            }
            Ok(Outcome::Rejected(rejected)) => {
                self.metrics.count_build(BuildOutcome::Rejected, began.elapsed());
                self.reject_invalid(&rejected);
                self.fall_back_if_resumed(repository, commit);
            }
            Err(BuildError::Cancelled(_)) => {
                self.metrics.count_build(BuildOutcome::Superseded, began.elapsed());
                let newer = self.state.lock().candidate();
                if let Some(by) = newer {
                    self.note_superseded(commit, by);
                }
            }
            // A build that decides waits for its slot.
            Err(BuildError::Busy) => {}
            Err(BuildError::Unreadable { source, .. }) => {
                self.metrics.count_build(BuildOutcome::Error, began.elapsed());
                self.refetch(commit, &source, |it| self.store.build(it, verified).is_ok());
            }
        }
    }

    /// Makes a valid commit live, unless something withholds it. Returns what became of it, if that is decided.
    fn activate(
        &self,
        repository: &Repository,
        snapshot: VerifiedSnapshot,
        trigger: Trigger,
        since: Instant,
    ) -> Option<BuildOutcome> {
        let commit = snapshot.commit();
        let built =
            match self.activator.activate(repository, snapshot, Cause::Followed(trigger), since) {
                Ok(()) => Some(BuildOutcome::Live),
                Err(Withheld::Stopping) => None,
                Err(Withheld::Superseded(by)) => {
                    self.note_superseded(commit, by);
                    Some(BuildOutcome::Superseded)
                }
                // It is verified and counted again.
                Err(Withheld::KeysChanged) => {
                    self.state.lock().retry_build(commit);
                    None
                }
                Err(Withheld::Pinned(_) | Withheld::Held | Withheld::Unread) => {
                    tracing::info!(%commit, "the commit is valid and held");
                    Some(BuildOutcome::Held)
                }
            };
        // A writer may wait for the decision, whatever it is.
        self.state.notify();
        built
    }

    fn note_superseded(&self, commit: CommitId, by: CommitId) {
        tracing::info!(%commit, %by, "the commit is superseded");
        self.recorder.note(Event::Superseded { commit, by });
    }

    /// Activates the newest valid commit behind a rejected head, if an operator resumed: also while the
    /// head was being built. Where keys change meanwhile, it is searched again.
    fn fall_back_if_resumed(&self, repository: &Repository, head: CommitId) {
        let is_wanted = || {
            let state = self.state.lock();
            state.is_wanted(head) && state.falls_back(head)
        };
        while is_wanted() {
            match self.fall_back(repository, head) {
                Err(Withheld::KeysChanged) => {}
                Ok(()) | Err(_) => return,
            }
        }
    }

    /// Activates the newest valid commit behind a rejected head, if there is one and nothing withholds it. A commit about
    /// which nothing is known ends the search: an older one must not take its place.
    fn fall_back(&self, repository: &Repository, head: CommitId) -> Result<(), Withheld> {
        /// More rejected commits in a row than a branch ever has.
        const LONGEST: usize = 100;
        let live = self.state.lock().live();
        // The search is done again where the keys are others than those by which it was done.
        let keys = self.verifier.keys();
        // A fetch may have mended what could not be read. If it has not, older commits answer.
        let was_interrupted = self.verifier.is_fallback_interrupted();
        self.verifier.note_fallback(FallbackSearch::Ended(keys.clone()));
        let behind = repository.readable_log(head, LONGEST);
        for commit in behind.into_iter().skip(1).take_while(|it| Some(*it) != live) {
            let verified = match self.verifier.verify_by(&keys, repository, commit, Trust::Begin) {
                Ok(verified) => verified,
                Err(error @ SignatureFault::UnreadableKeys { .. }) => {
                    tracing::warn!(%commit, %error, "the newest valid commit is searched again when keys change");
                    return Ok(());
                }
                Err(error @ SignatureFault::UnreadableCommit { .. }) if !was_interrupted => {
                    tracing::warn!(%commit, %error, "the newest valid commit is searched again after the next fetch");
                    self.verifier.note_fallback(FallbackSearch::Interrupted);
                    return Ok(());
                }
                Err(_) => continue,
            };
            let built = self.store.build(repository, &verified);
            let Ok(Outcome::Valid(snapshot)) = built else { continue };
            let cause = Cause::Fallback(head);
            let activated = self.activator.activate(repository, snapshot, cause, Instant::now());
            return activated.inspect_err(|withheld| {
                tracing::info!(%commit, %withheld, "the newest valid commit is not made live");
            });
        }
        Ok(())
    }

    /// Returns whether a commit and its history can be read, whatever their signatures are.
    fn can_verify(&self, repository: &Repository, commit: CommitId) -> bool {
        match self.verifier.verify(repository, commit, Trust::Begin) {
            Ok(_) => true,
            Err(fault) => fault.read_error().is_none(),
        }
    }

    /// Fetches everything again if objects of the mirror are damaged, unless that was done just now; the candidate is then
    /// built again. One that cannot be read all the same is built again after the next fetch.
    fn refetch(
        &self,
        commit: CommitId,
        problem: &ReadError,
        is_readable: impl FnOnce(&Repository) -> bool,
    ) {
        tracing::error!(%commit, error = %problem, "the commit cannot be read");
        // Others are damaged for libgit2, or may not be read: a fresh mirror has them.
        let note_damage = || {
            if self.source.kind() == SourceKind::Remote {
                self.state.lock().note_damage(problem.to_string());
            }
        };
        note_damage();
        if refetch_if_due(&self.source, &self.state, &self.recorder) {
            if self.source.repository().is_ok_and(|it| is_readable(&it)) {
                self.state.lock().retry_build(commit);
                return self.state.notify();
            }
            note_damage();
        }
        let failed = FailedCommit::as_a_whole(commit, Stage::Load, problem);
        self.reject(failed, Reason::CorruptObjects);
        if let Ok(repository) = self.source.repository() {
            self.fall_back_if_resumed(&repository, commit);
        }
    }

    /// Rejects the candidate that made the builder panic, so that the next one is built.
    fn reject_panicked(&self) {
        let Some(commit) = self.state.lock().building() else { return };
        let why = "building it made the daemon panic, which is a defect of Clade: see its log";
        self.reject(FailedCommit::as_a_whole(commit, Stage::Load, &why), Reason::Panicked);
        // Else a resume that waits has it built again with each fetch.
        self.verifier.note_fallback(FallbackSearch::Ended(self.verifier.keys()));
    }

    fn reject_signature(&self, commit: CommitId, fault: SignatureFault) {
        let reason = reason_of(&fault);
        tracing::error!(%commit, error = %fault, ?reason, "the commit is rejected");
        self.recorder.note_rejected(commit, Stage::Verify);
        self.state.lock().signature_rejected(commit, fault);
        self.state.notify();
    }

    fn reject_invalid(&self, rejected: &Arc<Rejected>) {
        /// How many findings are logged.
        const LOGGED: usize = 10;
        count_findings(&self.metrics, &rejected.diagnostics);
        for error in rejected.errors().take(LOGGED) {
            let start = error.place.span.start;
            tracing::error!(
                commit = %rejected.commit,
                kind = %error.kind,
                help = error.help.as_deref(),
                "{}:{}:{}: {}", error.place.file, start.line, start.column, error.message
            );
        }
        self.reject(FailedCommit::by_findings(rejected), Reason::ValidationFailed);
    }

    fn reject(&self, failed: FailedCommit, reason: Reason) {
        let FailedCommit { commit, stage, .. } = failed;
        tracing::error!(%commit, errors = failed.errors(), ?reason, "the commit is rejected");
        self.recorder.note_rejected(commit, stage);
        self.state.lock().build_failed(failed, reason);
        self.state.notify();
    }
}
