//! Deciding about the newest commit: verify, build, check, activate.
#![expect(clippy::disallowed_methods, reason = "ages are measured by the clock")]

use std::sync::PoisonError;
use std::time::Instant;

use serde_json::{Value, json};

use super::activate::{Admitted, Cause, Kept};
use super::admission::Trust;
use super::build::{BuildError, Outcome, build};
use super::controller::Controller;
use super::journal::{Event, Stage};
use super::settings::Target;
use super::standing::{Instead, Progress, is_error, reason_of};
use super::status::{LastFailed, Reason};
use super::trigger::Trigger;
use crate::diagnostic;
use crate::git::{Repository, SignatureFault};
use crate::model::CommitId;
use crate::telemetry::Built;

impl Controller {
    /// Takes the newest commit that waits and decides about it.
    pub(super) fn build_candidate(&self) {
        let (commit, trigger, since, instead) = {
            let mut state = self.state();
            let Some(candidate) = &mut state.standing.candidate else { return };
            if !matches!(candidate.progress, Progress::Pending) {
                return;
            }
            candidate.progress = Progress::Building;
            (candidate.commit, candidate.trigger, candidate.since, candidate.instead)
        };
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
                if instead == Instead::NewestValid {
                    self.activate_instead(&repository, commit);
                }
                return;
            }
        };
        if let Some(signer) = &signer {
            tracing::info!(%commit, %signer, "the signature is good");
        }
        let outcome = self.outcome_while(&repository, commit, &|| self.is_wanted(commit));
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
                if instead == Instead::NewestValid {
                    self.activate_instead(&repository, commit);
                }
            }
            Err(BuildError::Cancelled(_)) => {
                self.metrics.count_build(Built::Superseded, began.elapsed());
                let newer = self.state().standing.candidate.as_ref().map(|it| it.commit);
                if let Some(by) = newer {
                    self.note_superseded(commit, by);
                }
            }
            Err(BuildError::Unreadable { source, .. }) => {
                self.metrics.count_build(Built::Error, began.elapsed());
                self.mend(commit, &source);
            }
        }
    }

    /// Returns whether nobody found a newer commit.
    fn is_wanted(&self, commit: CommitId) -> bool {
        let state = self.state();
        !state.stopping && state.standing.candidate.as_ref().is_some_and(|it| it.commit == commit)
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

    /// Has the newest valid commit answer behind a head that is not, since an operator asked for it.
    fn activate_instead(&self, repository: &Repository, head: CommitId) {
        /// More commits in a row than anybody leaves broken.
        const LONGEST: usize = 100;
        let live = self.active.load().as_ref().map(|it| it.commit);
        let behind = repository.log(head, LONGEST).unwrap_or_default();
        let older = behind.into_iter().skip(1).take_while(|it| Some(*it) != live);
        for commit in older {
            let Ok(signer) = self.admit(repository, commit, Trust::Begin) else { continue };
            let Ok(Outcome::Valid(snapshot)) = self.outcome(repository, commit) else { continue };
            let (admitted, cause) = (Admitted { snapshot, signer }, Cause::Instead(head));
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
                let mut state = self.state();
                if let Some(candidate) = &mut state.standing.candidate {
                    candidate.progress = Progress::Pending;
                }
                drop(state);
                return self.notify();
            }
        }
        let diagnostics = vec![problem(problem_with)];
        self.fail(commit, Stage::Load, Reason::CorruptObjects, diagnostics);
    }

    fn refuse_signature(&self, commit: CommitId, fault: &SignatureFault) {
        self.fail(commit, Stage::Verify, reason_of(fault), vec![problem(fault)]);
    }

    fn fail(&self, commit: CommitId, stage: Stage, reason: Reason, diagnostics: Vec<Value>) {
        let errors = diagnostics.iter().filter(|it| is_error(it)).count();
        tracing::error!(%commit, errors, ?reason, "the commit is rejected");
        self.note(Event::Rejected { commit, stage });
        let mut state = self.state();
        if let Some(candidate) = &mut state.standing.candidate
            && candidate.commit == commit
        {
            candidate.progress =
                Progress::Failed(LastFailed { commit, stage, diagnostics }, reason);
        }
        drop(state);
        self.notify();
    }

    /// Returns what came of a commit, building it if need be. Blocking.
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
        let known = self.retained.lock().unwrap_or_else(PoisonError::into_inner).get(commit);
        if let Some(outcome) = known {
            return Ok(outcome);
        }
        let near = repository.parents(commit).unwrap_or_default();
        let live = self.active.load().as_ref().map(|it| it.commit);
        let base = {
            let retained = self.retained.lock().unwrap_or_else(PoisonError::into_inner);
            retained.base(near.into_iter().chain(live))
        };
        let built = build(
            repository,
            commit,
            &self.settings.path,
            &self.cache,
            base.as_ref(),
            self.settings.budget,
            wanted,
        )?;
        let outcome = built.outcome.clone();
        let mut retained = self.retained.lock().unwrap_or_else(PoisonError::into_inner);
        retained.insert(commit, built);
        Ok(outcome)
    }
}

/// A problem of the commit as a whole, in the shape of a diagnostic.
pub(super) fn problem(what: &dyn std::fmt::Display) -> Value {
    json!({"kind": null, "severity": "error", "message": what.to_string()})
}
