//! Making a commit answer: the one place where that happens, whatever asks for it.
//!
//! Polls, webhooks, writes, pins, resumes and the start all come here. Under one lock it is decided
//! whether the commit may answer now (a pin, a held rewrite or a newer head may have come while it
//! was built or pushed), and then it answers.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use super::clock::Now;
use super::controller::Controller;
use super::journal::Event;
use super::settings::Target;
use super::state::{Cause, Kept};
use super::status::Active;
use super::trigger::Trigger;
use crate::diagnostic;
use crate::git::{CommitInfo, Repository, Signer};
use crate::snapshot::Snapshot;

/// A commit that is valid and signed as the settings demand.
pub(super) struct Admitted {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) signer: Option<Signer>,
}

impl Controller {
    /// Makes a commit answer, unless something keeps it from doing so.
    ///
    /// # Errors
    ///
    /// Returns what keeps it.
    pub(super) fn activate(
        &self,
        repository: &Repository,
        admitted: Admitted,
        cause: Cause,
        since: Instant,
    ) -> Result<(), Kept> {
        self.activate_within(&self.activating(), repository, admitted, cause, since)
    }

    /// The same for who holds the lock already.
    pub(super) fn activate_within(
        &self,
        _lock: &MutexGuard<'_, ()>,
        repository: &Repository,
        admitted: Admitted,
        cause: Cause,
        since: Instant,
    ) -> Result<(), Kept> {
        self.state().may_answer(admitted.snapshot.commit, cause, Now::read())?;
        self.put(repository, admitted, cause.trigger(), since);
        Ok(())
    }

    /// Makes a snapshot answer.
    ///
    /// The journal knows first: what answered at a time must be told even if the power fails a
    /// moment later. The mirror notes it last.
    fn put(
        &self,
        repository: &Repository,
        Admitted { snapshot, signer }: Admitted,
        trigger: Trigger,
        since: Instant,
    ) {
        let commit = snapshot.commit;
        let groups = snapshot.estate.hierarchy.len();
        if let Some(signer) = &signer
            && !self.journal().has_verified(commit)
        {
            self.note(Event::Verified { commit, signer: signer.to_string() });
        }
        let answered = self.journal().live();
        if answered != Some(commit) {
            self.note(Event::Activated { commit, trigger });
        }
        let activated_at = self.journal().activations().next_back().map(|(time, _)| time);
        self.count_findings(&snapshot.warnings);
        self.live_snapshots.set_stable(snapshot);
        self.metrics.count_activation(trigger.as_str(), since.elapsed());
        if let Target::Remote(mirror) = &self.settings.target
            && mirror.set_live(commit).is_err()
        {
            tracing::warn!(%commit, "the commit that answers could not be noted in the mirror");
        }
        let info = repository.commit(commit).ok();
        let active = info.map(|CommitInfo { id, author, time, subject }| Active {
            commit: id,
            author,
            time,
            subject,
            activated_at: activated_at.unwrap_or_else(|| Now::read().wall),
            groups,
            trigger,
        });
        self.state().activated(commit, active, signer);
        self.notify();
        tracing::info!(%commit, groups, trigger = trigger.as_str(), "the commit answers");
    }

    pub(super) fn count_findings(&self, findings: &[diagnostic::Diagnostic]) {
        for it in findings {
            self.metrics.count_finding(it.kind.as_str(), it.severity.as_str());
        }
    }
}
