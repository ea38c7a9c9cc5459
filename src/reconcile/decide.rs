//! Deciding about the newest commit: verify, build, check, activate.
#![expect(clippy::disallowed_methods, reason = "ages are measured by the clock")]

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use super::build::{BuildError, Outcome, build};
use super::controller::Controller;
use super::journal::{Event, Stage};
use super::settings::{OnRewrite, Target};
use super::standing::{Candidate, Progress, is_error, reason_of};
use super::status::{Active, LastFailed, Reason};
use super::trigger::Trigger;
use crate::diagnostic;
use crate::git::{CommitInfo, Repository, SignatureFault};
use crate::model::CommitId;
use crate::snapshot::Snapshot;
use crate::telemetry::Built;

impl Controller {
    /// Takes the newest commit that waits and decides about it.
    pub(super) fn build_candidate(&self) {
        let (commit, trigger, since) = {
            let mut state = self.state();
            let Some(candidate) = &mut state.standing.candidate else { return };
            if !matches!(candidate.progress, Progress::Pending) {
                return;
            }
            candidate.progress = Progress::Building;
            (candidate.commit, candidate.trigger, candidate.since)
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
        let live = self.active.load().as_ref().map(|it| it.commit);
        match self.settings.verification.check(&repository, commit, live) {
            Ok(None) => {}
            Ok(Some(signer)) => tracing::info!(%commit, %signer, "the signature is good"),
            Err(fault) => {
                self.metrics.count_build(Built::Rejected, began.elapsed());
                return self.refuse_signature(commit, &fault);
            }
        }
        let outcome = self.outcome_while(&repository, commit, &|| self.is_wanted(commit));
        match outcome {
            Ok(Outcome::Valid(snapshot)) => {
                self.metrics.count_build(Built::Live, began.elapsed());
                if self.hold(commit) {
                    tracing::info!(%commit, "the commit is valid and held");
                } else {
                    self.activate(&repository, snapshot, trigger, since);
                }
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
            }
            Err(BuildError::Cancelled(_)) => {
                self.metrics.count_build(Built::Superseded, began.elapsed());
                let newer = self.state().standing.candidate.as_ref().map(|it| it.commit);
                if let Some(by) = newer {
                    tracing::info!(%commit, %by, "the commit is superseded");
                    self.note(Event::Superseded { commit, by });
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

    /// Holds a valid commit that must not answer yet.
    fn hold(&self, commit: CommitId) -> bool {
        let policy = self.settings.policy;
        let mut state = self.state();
        let standing = &mut state.standing;
        let rewrite_waits = policy.on_rewrite == OnRewrite::Hold
            && standing.rewritten.is_some_and(|it| it.to == commit && !it.accepted);
        let held = standing.pinned.is_some_and(|it| it != commit)
            || standing.behind.is_some_and(|it| it.head == commit)
            || rewrite_waits;
        if let Some(candidate) = &mut standing.candidate
            && held
            && candidate.commit == commit
        {
            candidate.progress = Progress::Held;
        }
        held
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

    /// Makes a snapshot answer.
    ///
    /// The journal knows first: what answered at a time must be told even if the power fails a
    /// moment later. The mirror notes it last.
    pub(super) fn activate(
        &self,
        repository: &Repository,
        snapshot: Arc<Snapshot>,
        trigger: Trigger,
        since: Instant,
    ) {
        let _one_at_a_time = self.activating();
        let commit = snapshot.commit;
        let groups = snapshot.estate.hierarchy.len();
        let answered = self.journal().live();
        if answered != Some(commit) {
            self.note(Event::Activated { commit, trigger });
        }
        let activated_at = self.journal().activations().next_back().map(|(time, _)| time);
        self.count_findings(&snapshot.warnings);
        let before = self.active.load_full().filter(|it| !Arc::ptr_eq(it, &snapshot));
        snapshot.keep_answers();
        self.active.store(Some(snapshot));
        if let Some(before) = before {
            before.forget_answers();
        }
        self.metrics.count_activation(trigger.as_str(), since.elapsed());
        if let Target::Remote(mirror) = &self.settings.target
            && mirror.set_live(commit).is_err()
        {
            tracing::warn!(%commit, "the commit that answers could not be noted in the mirror");
        }
        let info = repository.commit(commit).ok();
        let verified = self.settings.verification.check(repository, commit, None).transpose();
        let mut state = self.state();
        let standing = &mut state.standing;
        standing.active = info.map(|CommitInfo { id, author, time, subject }| Active {
            commit: id,
            author,
            time,
            subject,
            activated_at: activated_at.unwrap_or_else(jiff::Timestamp::now),
            groups,
            trigger,
        });
        standing.verified = verified;
        if standing.candidate.as_ref().is_some_and(|it: &Candidate| it.commit == commit) {
            standing.candidate = None;
        }
        standing.behind = None;
        drop(state);
        self.notify();
        tracing::info!(%commit, groups, trigger = trigger.as_str(), "the commit answers");
    }

    fn count_findings(&self, findings: &[diagnostic::Diagnostic]) {
        for it in findings {
            self.metrics.count_finding(it.kind.as_str(), it.severity.as_str());
        }
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
fn problem(what: &dyn std::fmt::Display) -> Value {
    json!({"kind": null, "severity": "error", "message": what.to_string()})
}
