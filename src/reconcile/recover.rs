//! The start: what answered last answers again, and what was known is known again.
#![expect(clippy::disallowed_methods, reason = "activations are measured by the clock")]

use std::time::Instant;

use super::activate::Admitted;
use super::admission::Trust;
use super::build::Outcome;
use super::builder::problem;
use super::controller::Controller;
use super::journal::{Event, Stage};
use super::settings::Target;
use super::state::{Cause, reason_of};
use super::status::{LastFailed, Observed};
use crate::diagnostic;
use crate::git::{Repository, SignatureFault};
use crate::model::CommitId;

impl Controller {
    /// Answers from what answered before the restart, if the mirror has it, and goes on with the head
    /// that was seen last.
    pub(super) fn recover(&self) {
        let pinned = self.journal().pinned();
        self.state().set_pinned(pinned.map(|(commit, _)| commit));
        let noted = match &self.settings.target {
            Target::Local(_) => None,
            Target::Remote(mirror) => mirror.live(),
        };
        let last = pinned.map(|(commit, _)| commit).or_else(|| self.journal().live()).or(noted);
        let repository = match self.repository() {
            Ok(repository) => repository,
            Err(error) => {
                if let Some(commit) = last {
                    self.note_unrecovered(
                        commit,
                        format!("the repository cannot be read: {error}"),
                    );
                }
                return;
            }
        };
        if let Some(commit) = last
            && let Err(reason) = self.recover_live(&repository, commit)
        {
            self.note_unrecovered(commit, reason);
        }
        // Also where nothing answers: the head may be valid, and the remote out of reach.
        if let Target::Remote(_) = &self.settings.target
            && let Some(observed) = self.observed_last(&repository)
        {
            self.follow_recovered(&repository, observed);
        }
    }

    /// Keeps why the commit that answered last does not answer, for the status.
    fn note_unrecovered(&self, commit: CommitId, reason: String) {
        tracing::error!(%commit, reason, "the commit that answered last does not answer");
        self.state().unrecovered = Some((commit, reason));
    }

    /// Makes the commit that answered last answer, or returns why it cannot.
    fn recover_live(&self, repository: &Repository, commit: CommitId) -> Result<(), String> {
        let signer = match self.admit(repository, commit, Trust::Begin) {
            Ok(signer) => signer,
            Err(SignatureFault::Unreadable { reason, .. })
                if repository.commit(commit).is_err() =>
            {
                return Err(format!("it is not in the mirror: {reason}"));
            }
            Err(fault) => {
                let diagnostics = vec![problem(&fault)];
                let failed = LastFailed { commit, stage: Stage::Verify, diagnostics };
                self.state().recovery_failed(failed, reason_of(&fault), Instant::now());
                return Err(fault.to_string());
            }
        };
        match self.outcome(repository, commit) {
            Ok(Outcome::Valid(snapshot)) => {
                let admitted = Admitted { snapshot, signer };
                let kept = self.activate(repository, admitted, Cause::Recovered, Instant::now());
                kept.map_err(|kept| format!("{kept:?}"))
            }
            Ok(Outcome::Rejected(rejected)) => {
                let diagnostics = rejected.diagnostics.iter().map(diagnostic::to_value).collect();
                let failed = LastFailed { commit, stage: Stage::Check, diagnostics };
                Err(format!("it is not valid any more: {}", failed.in_short()))
            }
            Err(error) => Err(format!("it cannot be read: {error}")),
        }
    }

    /// Returns the head that the mirror was at last, with when that was, as far as the journal knows.
    fn observed_last(&self, repository: &Repository) -> Option<Observed> {
        let head = repository.resolve("HEAD").ok()?;
        let journal = self.journal();
        let when = journal.records().iter().rev().find(|it| match &it.event {
            Event::Fetched { commit } | Event::Activated { commit, .. } => *commit == head,
            // A write that is held, such as by a pin, was neither fetched nor activated.
            Event::Pushing { writes } => writes.iter().any(|it| it.commit == head),
            _ => false,
        });
        Some(Observed { commit: head, fetched_at: when?.time })
    }
}
