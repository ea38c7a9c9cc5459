//! Whether a commit may answer, and what follows when it does.

use super::{Ancestry, Candidate, Progress, ReconcileState};
use crate::git::Signer;
use crate::model::CommitId;
use crate::reconcile::clock::Now;
use crate::reconcile::settings::OnRewrite;
use crate::reconcile::status::Active;
use crate::reconcile::trigger::Trigger;

/// What asks for a commit to answer.
#[derive(Clone, Copy, Debug)]
pub(in crate::reconcile) enum Cause {
    /// The branch is at it, or it is what an operator pinned and answers late.
    Followed(Trigger),
    /// The branch is at a commit that is not valid, and an operator resumed: the newest valid one answers.
    Fallback(CommitId),
    /// A write pushed it.
    Written,
    /// An operator pinned it.
    Pinned,
    /// It answered before the restart.
    Recovered,
}

/// Why a valid commit does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reconcile) enum Kept {
    /// An operator pinned another.
    Pinned(CommitId),
    /// It waits for an operator, or for a remote that may lag.
    Held,
    /// A newer commit took its place.
    Superseded(CommitId),
    /// The daemon stops.
    Stopping,
}

/// What becomes of a write that was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reconcile) enum Pushed {
    /// It answers already: the branch was fetched while the remote finished the push.
    Answers,
    /// It may answer, if nothing else keeps it.
    MayAnswer,
}

impl Cause {
    /// Returns what is recorded as the trigger.
    pub(in crate::reconcile) fn trigger(self) -> Trigger {
        match self {
            Self::Followed(trigger) => trigger,
            Self::Written => Trigger::Write,
            Self::Fallback(_) | Self::Pinned => Trigger::Manual,
            Self::Recovered => Trigger::Startup,
        }
    }
}

impl ReconcileState {
    /// A write is at the remote.
    ///
    /// # Errors
    ///
    /// Returns an error if the branch went to a commit that lacks it.
    pub(in crate::reconcile) fn pushed(
        &mut self,
        commit: CommitId,
        ancestry: &dyn Ancestry,
        now: Now,
    ) -> Result<Pushed, Kept> {
        if self.live.is_some_and(|live| ancestry.is_ancestor(commit, live)) {
            return Ok(Pushed::Answers);
        }
        match self.head() {
            // What others put on top of it follows.
            Some(head) if ancestry.is_ancestor(commit, head) => {}
            Some(head) if !ancestry.is_ancestor(head, commit) => {
                return Err(Kept::Superseded(head));
            }
            Some(_) | None => self.note_written(commit, now),
        }
        Ok(Pushed::MayAnswer)
    }

    /// The branch is at a commit that was pushed from here.
    pub(in crate::reconcile) fn note_written(&mut self, commit: CommitId, now: Now) {
        self.published += 1;
        self.note_contact(commit, now);
        self.last_change = Some(now.wall);
        self.candidate = None;
        self.expected.retain(|it| it.commit != commit);
    }

    /// Decides whether a valid commit may answer now; one that may not is held.
    ///
    /// A pin, a held rewrite or a newer head may have come while it was built or pushed.
    ///
    /// # Errors
    ///
    /// Returns what keeps it from answering.
    pub(in crate::reconcile) fn may_answer(
        &mut self,
        commit: CommitId,
        cause: Cause,
        now: Now,
    ) -> Result<(), Kept> {
        if self.stopping {
            return Err(Kept::Stopping);
        }
        match cause {
            Cause::Pinned | Cause::Recovered => Ok(()),
            Cause::Written => self.may_answer_written(commit, now),
            Cause::Fallback(head) => self.may_answer_behind(commit, head),
            Cause::Followed(_) => self.may_answer_followed(commit),
        }
    }

    fn may_answer_written(&mut self, commit: CommitId, now: Now) -> Result<(), Kept> {
        let Some(pinned) = self.pinned_instead_of(commit) else { return Ok(()) };
        let held = Candidate::new(commit, Trigger::Write, now.monotonic);
        self.candidate.get_or_insert(held.with(Progress::Held));
        Err(Kept::Pinned(pinned))
    }

    fn may_answer_behind(&self, commit: CommitId, head: CommitId) -> Result<(), Kept> {
        if let Some(pinned) = self.pinned_instead_of(commit) {
            return Err(Kept::Pinned(pinned));
        }
        match self.candidate.as_ref().map(|it| it.commit) {
            Some(candidate) if candidate == head => Ok(()),
            Some(newer) => Err(Kept::Superseded(newer)),
            None => Err(Kept::Superseded(head)),
        }
    }

    fn may_answer_followed(&mut self, commit: CommitId) -> Result<(), Kept> {
        let wanted = self.candidate.as_ref().map(|it| it.commit);
        if let Some(newer) = wanted.filter(|it| *it != commit) {
            return Err(Kept::Superseded(newer));
        }
        if self.pinned == Some(commit) {
            return Ok(());
        }
        let is_rewrite_held = self.policy.on_rewrite == OnRewrite::Hold
            && self.rewritten.is_some_and(|it| it.to == commit && !it.accepted);
        let lags = self.behind.is_some_and(|it| it.head == commit);
        let kept = match (self.pinned, wanted, self.head()) {
            (Some(pinned), ..) => Kept::Pinned(pinned),
            // A write replaced it meanwhile.
            (None, None, Some(head)) => Kept::Superseded(head),
            (None, Some(_), _) if lags || is_rewrite_held => Kept::Held,
            (None, ..) => return Ok(()),
        };
        if let Some(candidate) = &mut self.candidate {
            candidate.progress = Progress::Held;
        }
        Err(kept)
    }

    /// A commit answers.
    pub(in crate::reconcile) fn activated(
        &mut self,
        commit: CommitId,
        active: Option<Active>,
        signer: Option<Signer>,
    ) {
        self.live = Some(commit);
        self.active = active;
        self.verified = signer.map(Ok);
        if self.is_candidate(commit) {
            self.candidate = None;
        }
        self.behind = None;
        self.unrecovered = None;
    }

    fn pinned_instead_of(&self, commit: CommitId) -> Option<CommitId> {
        self.pinned.filter(|it| *it != commit)
    }
}
