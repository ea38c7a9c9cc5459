//! Deciding about the newest commit: verify, build, check, activate.
#![expect(clippy::disallowed_methods, reason = "ages are measured by the clock")]

use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::activate::Admitted;
use super::admission::Trust;
use super::build::{BuildError, Outcome, build};
use super::controller::Controller;
use super::journal::{Event, Stage};
use super::settings::Target;
use super::snapshot_cache::Retained;
use super::state::{BuildJob, Cause, Kept, is_error, reason_of};
use super::status::{LastFailed, Reason};
use super::trigger::Trigger;
use super::turns::Urgency;
use crate::diagnostic;
use crate::git::{Repository, SignatureFault};
use crate::model::{Budget, CommitId};
use crate::telemetry::Built;

impl Controller {
    /// Takes the newest commit that waits and decides about it.
    pub(super) fn build_candidate(&self) {
        let Some(BuildJob { commit, trigger, since }) = self.state().take_build() else { return };
        let began = Instant::now();
        let repository = match self.repository() {
            Ok(repository) => repository,
            Err(error) => {
                return self.fail(
                    commit,
                    Stage::Load,
                    Reason::CorruptObjects,
                    vec![problem(&error)],
                );
            }
        };
        let signer = match self.admit(&repository, commit, Trust::Begin) {
            Ok(signer) => signer,
            Err(fault) => {
                self.metrics.count_build(Built::Rejected, began.elapsed());
                self.refuse_signature(commit, &fault);
                self.activate_instead_if_resumed(&repository, commit);
                return;
            }
        };
        if let Some(signer) = &signer {
            tracing::info!(%commit, %signer, "the signature is good");
        }
        let outcome = self.outcome_while(&repository, commit, &|| self.state().is_wanted(commit));
        match outcome {
            Ok(Outcome::Valid(snapshot)) => {
                self.metrics.count_build(Built::Live, began.elapsed());
                let admitted = Admitted { snapshot, signer };
                self.activate_candidate(&repository, admitted, trigger, since);
            }
            Ok(Outcome::Rejected(rejected)) => {
                self.metrics.count_build(Built::Rejected, began.elapsed());
                self.count_findings(&rejected.diagnostics);
                for error in rejected
                    .diagnostics
                    .iter()
                    .filter(|it| it.severity == diagnostic::Severity::Error)
                    .take(10)
                {
                    let start = error.place.span.start;
                    tracing::error!(
                        %commit,
                        kind = %error.kind,
                        "{}:{}:{}: {}", error.place.file, start.line, start.column, error.message
                    );
                }
                let diagnostics = rejected.diagnostics.iter().map(diagnostic::to_value).collect();
                self.fail(commit, Stage::Check, Reason::ValidationFailed, diagnostics);
                self.activate_instead_if_resumed(&repository, commit);
            }
            Err(BuildError::Cancelled(_)) => {
                self.metrics.count_build(Built::Superseded, began.elapsed());
                let newer = self.state().candidate();
                if let Some(by) = newer {
                    self.note_superseded(commit, by);
                }
            }
            // A build that decides waits for its turn.
            Err(BuildError::Busy) => {}
            Err(BuildError::Unreadable { source, .. }) => {
                self.metrics.count_build(Built::Error, began.elapsed());
                self.mend(commit, &source);
            }
        }
    }

    /// Has a valid commit answer, unless something came meanwhile.
    fn activate_candidate(
        &self,
        repository: &Repository,
        admitted: Admitted,
        trigger: Trigger,
        since: Instant,
    ) {
        let commit = admitted.snapshot.commit;
        match self.activate(repository, admitted, Cause::Followed(trigger), since) {
            Ok(()) | Err(Kept::Stopping) => {}
            Err(Kept::Superseded(by)) => self.note_superseded(commit, by),
            Err(Kept::Pinned(_) | Kept::Held) => {
                tracing::info!(%commit, "the commit is valid and held");
            }
        }
        // A held commit is decided about as well.
        self.notify();
    }

    fn note_superseded(&self, commit: CommitId, by: CommitId) {
        tracing::info!(%commit, %by, "the commit is superseded");
        self.note(Event::Superseded { commit, by });
    }

    /// Activates the newest valid commit before a rejected one, if an operator resumed: also while that
    /// one was being built.
    fn activate_instead_if_resumed(&self, repository: &Repository, rejected: CommitId) {
        let resumed = self.state().falls_back(rejected);
        if resumed {
            self.activate_instead(repository, rejected);
        }
    }

    /// Has the newest valid commit answer behind a head that is not, since an operator asked for it.
    fn activate_instead(&self, repository: &Repository, head: CommitId) {
        /// More rejected commits in a row than a branch ever has.
        const LONGEST: usize = 100;
        let live = self.live_snapshots.commit();
        let behind = repository.log(head, LONGEST).unwrap_or_default();
        let older = behind.into_iter().skip(1).take_while(|it| Some(*it) != live);
        for commit in older {
            let Ok(signer) = self.admit(repository, commit, Trust::Begin) else { continue };
            let Ok(Outcome::Valid(snapshot)) = self.outcome(repository, commit) else { continue };
            let (admitted, cause) = (Admitted { snapshot, signer }, Cause::Fallback(head));
            if let Err(kept) = self.activate(repository, admitted, cause, Instant::now()) {
                tracing::info!(%commit, ?kept, "the newest valid commit does not answer");
            }
            return;
        }
    }

    /// Objects of the mirror are damaged: everything is fetched anew, and the next look decides.
    fn mend(&self, commit: CommitId, problem_with: &dyn std::fmt::Display) {
        tracing::error!(%commit, error = %problem_with, "the commit cannot be read");
        if let Target::Remote(mirror) = &self.settings.target
            && mirror.renew(self.settings.branch.as_deref()).is_ok()
        {
            let again = self.repository().ok().and_then(|it| self.outcome(&it, commit).ok());
            if again.is_some() {
                self.state().retry_build();
                return self.notify();
            }
        }
        let diagnostics = vec![problem(problem_with)];
        self.fail(commit, Stage::Load, Reason::CorruptObjects, diagnostics);
    }

    /// The candidate made the builder panic: it never answers, and the next one is built.
    pub(super) fn note_panic(&self) {
        let Some(commit) = self.state().building() else { return };
        let why = "building it made the daemon panic, which is a defect of Clade: see its log";
        self.fail(commit, Stage::Load, Reason::Panicked, vec![problem(&why)]);
    }

    fn refuse_signature(&self, commit: CommitId, fault: &SignatureFault) {
        self.fail(commit, Stage::Verify, reason_of(fault), vec![problem(fault)]);
    }

    fn fail(&self, commit: CommitId, stage: Stage, reason: Reason, diagnostics: Vec<Value>) {
        let errors = diagnostics.iter().filter(|it| is_error(it)).count();
        tracing::error!(%commit, errors, ?reason, "the commit is rejected");
        self.note(Event::Rejected { commit, stage });
        self.state().build_failed(LastFailed { commit, stage, diagnostics }, reason);
        self.notify();
    }

    /// Returns what came of a commit, building it before anything that only reads. Blocking.
    pub(super) fn outcome(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<Outcome, BuildError> {
        self.outcome_while(repository, commit, &|| true)
    }

    fn outcome_while(
        &self,
        repository: &Repository,
        commit: CommitId,
        wanted: super::build::Wanted<'_>,
    ) -> Result<Outcome, BuildError> {
        if let Some(known) = self.retained().get(commit) {
            return Ok(known);
        }
        let _turn = self.turns.take(Urgency::Decides);
        self.build_now(repository, commit, self.settings.budget, wanted)
    }

    /// Returns what came of a commit that is only read, building it when nothing else is built. A
    /// commit that the branch does not have, such as the head of a pull request, gets a tenth of the
    /// budget beyond what answers. Blocking.
    pub(super) fn outcome_to_read(
        &self,
        repository: &Repository,
        commit: CommitId,
        urgency: Urgency,
    ) -> Result<Outcome, BuildError> {
        /// How often a build gives way to what decides.
        const TRIES: usize = 8;
        if let Some(known) = self.retained().get(commit) {
            return Ok(known);
        }
        let wanted = || !self.turns.is_awaited();
        for _ in 0..TRIES {
            let turn = self.turns.take(urgency).ok_or(BuildError::Busy)?;
            let built = self
                .budget_to_read(repository, commit)
                .and_then(|budget| self.build_now(repository, commit, budget, &wanted));
            drop(turn);
            match built {
                Err(BuildError::Cancelled(_)) => {}
                done => return done,
            }
        }
        Err(BuildError::Busy)
    }

    /// Returns what came of a commit that is kept.
    pub(super) fn outcome_if_known(&self, commit: CommitId) -> Option<Outcome> {
        self.retained().get(commit)
    }

    /// Returns what the head of a pull request may cost. Blocking.
    pub(super) fn budget_of_head(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<Budget, BuildError> {
        let _turn = self.turns.take(Urgency::Reports);
        self.budget_to_read(repository, commit)
    }

    /// Returns what a commit that is only read may cost. Called in a turn.
    fn budget_to_read(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<Budget, BuildError> {
        let budget = self.settings.budget;
        let live = self.live_commit();
        let head = self.state().head();
        let is_part = |of: CommitId| repository.is_ancestor(commit, of).unwrap_or(false);
        if head.into_iter().chain(live).any(is_part) {
            return Ok(budget);
        }
        let Some(live) = live else { return Ok(budget.for_unreviewed(None)) };
        // Evicted between its build and its activation: without its counts, heads that are as large
        // would be rejected.
        if self.retained().built(live).is_none() {
            self.build_now(repository, live, budget, &|| true)?;
        }
        let counts = self.retained().built(live).map(|it| it.checked.counts());
        Ok(budget.for_unreviewed(counts.as_ref()))
    }

    fn live_commit(&self) -> Option<CommitId> {
        self.live_snapshots.commit()
    }

    /// Builds a commit, in a turn, unless the turn before built it.
    fn build_now(
        &self,
        repository: &Repository,
        commit: CommitId,
        budget: Budget,
        wanted: super::build::Wanted<'_>,
    ) -> Result<Outcome, BuildError> {
        if let Some(known) = self.retained().get(commit) {
            return Ok(known);
        }
        let near = repository.parents(commit).unwrap_or_default();
        let base = self.retained().base(near.into_iter().chain(self.live_commit()));
        let (path, cache) = (&self.settings.path, &self.cache);
        let built = build(repository, commit, path, cache, base.as_ref(), budget, wanted)?;
        let outcome = built.outcome.clone();
        // What is too large for a smaller budget may be valid once the branch has it.
        if budget == self.settings.budget || !outcome.is_too_large() {
            let live = self.live_commit();
            self.retained().insert(commit, built, live, self.settings.snapshot_cache);
        }
        Ok(outcome)
    }

    fn retained(&self) -> MutexGuard<'_, Retained> {
        self.retained.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A problem of the commit as a whole, in the shape of a diagnostic.
pub(super) fn problem(what: &dyn std::fmt::Display) -> Value {
    json!({"kind": null, "severity": "error", "message": what.to_string()})
}
