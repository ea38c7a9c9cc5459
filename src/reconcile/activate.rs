//! Making a commit answer: the one place where that happens, whatever asks for it.
//!
//! Polls, webhooks, writes, pins, resumes and the start all come here. Under one lock it is decided
//! whether the commit may answer now (a pin, a held rewrite or a newer head may have come while it
//! was built or pushed), and then it answers.
#![expect(clippy::disallowed_methods, reason = "ages are measured by the clock")]

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use super::controller::Controller;
use super::journal::Event;
use super::settings::{OnRewrite, Target};
use super::standing::{Candidate, Progress};
use super::status::Active;
use super::trigger::Trigger;
use crate::diagnostic;
use crate::git::{CommitInfo, Repository, Signer};
use crate::model::CommitId;
use crate::snapshot::Snapshot;

/// A commit that is valid and signed as the settings demand.
pub(super) struct Admitted {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) signer: Option<Signer>,
}

/// What asks for a commit to answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cause {
    /// The branch is at it, or it is what an operator pinned and answers late.
    Followed(Trigger),
    /// The branch is at a commit that is not valid, and an operator has the newest valid one answer.
    Instead(CommitId),
    /// A write pushed it.
    Written,
    /// An operator pinned it.
    Pinned,
    /// It answered before the restart.
    Recovered,
}

/// Why a commit does not answer although it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// An operator pinned another.
    Pinned(CommitId),
    /// It waits for an operator, or for the remote to settle on a head.
    Held,
    /// A newer commit took its place.
    Superseded(CommitId),
    /// The daemon stops.
    Stopping,
}

impl Cause {
    fn trigger(self) -> Trigger {
        match self {
            Self::Followed(trigger) => trigger,
            Self::Written => Trigger::Write,
            Self::Instead(_) | Self::Pinned => Trigger::Manual,
            Self::Recovered => Trigger::Startup,
        }
    }
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
        if let Some(kept) = self.keeps(admitted.snapshot.commit, cause) {
            return Err(kept);
        }
        self.put(repository, admitted, cause.trigger(), since);
        Ok(())
    }

    /// Decides whether a commit may answer now; one that may not is held.
    fn keeps(&self, commit: CommitId, cause: Cause) -> Option<Kept> {
        let policy = self.settings.policy;
        let mut state = self.state();
        if state.stopping {
            return Some(Kept::Stopping);
        }
        let standing = &mut state.standing;
        let pinned = standing.pinned.filter(|it| *it != commit);
        let wanted = standing.candidate.as_ref().map(|it| it.commit);
        match cause {
            Cause::Pinned | Cause::Recovered => None,
            Cause::Written => {
                let pinned = pinned?;
                let held = Candidate::new(commit, Trigger::Write, Instant::now());
                standing.candidate.get_or_insert(held.with(Progress::Held));
                Some(Kept::Pinned(pinned))
            }
            Cause::Instead(head) => match (pinned, wanted) {
                (Some(pinned), _) => Some(Kept::Pinned(pinned)),
                (None, Some(newer)) if newer != head => Some(Kept::Superseded(newer)),
                (None, Some(_)) => None,
                (None, None) => Some(Kept::Superseded(head)),
            },
            Cause::Followed(_) => {
                if let Some(newer) = wanted.filter(|it| *it != commit) {
                    return Some(Kept::Superseded(newer));
                }
                if standing.pinned == Some(commit) {
                    return None;
                }
                let rewrite_waits = policy.on_rewrite == OnRewrite::Hold
                    && standing.rewritten.is_some_and(|it| it.to == commit && !it.accepted);
                let lags = standing.behind.is_some_and(|it| it.head == commit);
                let kept = match pinned {
                    Some(pinned) => Kept::Pinned(pinned),
                    // What a write replaced meanwhile is not wanted any more.
                    None if wanted.is_none() => Kept::Superseded(standing.observed?.commit),
                    None if lags || rewrite_waits => Kept::Held,
                    None => return None,
                };
                if let Some(candidate) = &mut standing.candidate {
                    candidate.progress = Progress::Held;
                }
                Some(kept)
            }
        }
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
        standing.verified = signer.map(Ok);
        if standing.candidate.as_ref().is_some_and(|it: &Candidate| it.commit == commit) {
            standing.candidate = None;
        }
        standing.behind = None;
        standing.unrecovered = None;
        drop(state);
        self.notify();
        tracing::info!(%commit, groups, trigger = trigger.as_str(), "the commit answers");
    }

    pub(super) fn count_findings(&self, findings: &[diagnostic::Diagnostic]) {
        for it in findings {
            self.metrics.count_finding(it.kind.as_str(), it.severity.as_str());
        }
    }
}
