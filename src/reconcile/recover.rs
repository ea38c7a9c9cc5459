//! The start: what answered last answers again, and what was known is known again.
#![expect(clippy::disallowed_methods, reason = "activations are measured by the clock")]

use std::time::Instant;

use super::activate::{Admitted, Cause};
use super::admission::Trust;
use super::build::Outcome;
use super::controller::Controller;
use super::decide::problem;
use super::journal::{Event, Stage};
use super::settings::Target;
use super::standing::{Candidate, Progress, reason_of};
use super::status::{LastFailed, Observed};
use super::trigger::Trigger;
use crate::git::{Repository, SignatureFault};
use crate::model::CommitId;

impl Controller {
    /// Answers from what answered before the restart, if the mirror has it, and goes on with the head
    /// that was seen last.
    pub(super) fn recover(&self) {
        let pinned = self.journal().pinned();
        self.state().standing.pinned = pinned.map(|(commit, _)| commit);
        let noted = match &self.settings.target {
            Target::Local(_) => None,
            Target::Remote(mirror) => mirror.live(),
        };
        let last = pinned.map(|(commit, _)| commit).or_else(|| self.journal().live()).or(noted);
        let repository = match self.repository() {
            Ok(repository) => repository,
            Err(error) => {
                if let Some(commit) = last {
                    tracing::warn!(%commit, %error, "the commit that answered last cannot be read");
                }
                return;
            }
        };
        if let Some(commit) = last {
            self.recover_live(&repository, commit);
        }
        if let Target::Remote(_) = &self.settings.target
            && self.active.load().is_some()
            && let Some(observed) = self.observed_last(&repository)
        {
            let written = {
                let mut state = self.state();
                state.standing.observed = Some(observed);
                state.standing.written
            };
            self.consider(&repository, observed.commit, Trigger::Startup, written);
        }
    }

    fn recover_live(&self, repository: &Repository, commit: CommitId) {
        let signer = match self.admit(repository, commit, Trust::Begin) {
            Ok(signer) => signer,
            Err(SignatureFault::Unreadable { reason, .. })
                if repository.commit(commit).is_err() =>
            {
                return tracing::warn!(%commit, error = %reason, "the commit that answered last is not in the mirror");
            }
            Err(fault) => {
                tracing::error!(%commit, error = %fault, "the commit that answered last is not signed as --verify demands");
                let mut candidate = Candidate::new(commit, Trigger::Startup, Instant::now());
                let diagnostics = vec![problem(&fault)];
                let failed = LastFailed { commit, stage: Stage::Verify, diagnostics };
                candidate.progress = Progress::Failed(failed, reason_of(&fault));
                self.state().standing.candidate = Some(candidate);
                return;
            }
        };
        match self.outcome(repository, commit) {
            Ok(Outcome::Valid(snapshot)) => {
                let admitted = Admitted { snapshot, signer };
                let kept = self.activate(repository, admitted, Cause::Recovered, Instant::now());
                if let Err(kept) = kept {
                    tracing::warn!(%commit, ?kept, "the commit that answered last does not answer");
                }
            }
            Ok(Outcome::Rejected(_)) => {
                tracing::warn!(%commit, "the commit that answered last is not valid any more");
            }
            Err(error) => {
                tracing::warn!(%commit, %error, "the commit that answered last cannot be read");
            }
        }
    }

    /// Returns the head that the mirror was at last, with when that was, as far as the journal knows.
    fn observed_last(&self, repository: &Repository) -> Option<Observed> {
        let head = repository.resolve("HEAD").ok()?;
        let journal = self.journal();
        let when = journal.records().iter().rev().find(|it| match it.event {
            Event::Fetched { commit } | Event::Activated { commit, .. } => commit == head,
            _ => false,
        });
        Some(Observed { commit: head, fetched_at: when?.time })
    }
}
