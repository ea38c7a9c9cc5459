//! Whether a commit may be live, and what follows when it is.

use super::{Candidate, KnownAncestry, Progress, ReconcileState};
use crate::git::Signer;
use crate::model::CommitId;
use crate::reconcile::clock::Now;
use crate::reconcile::policy::OnRewrite;
use crate::reconcile::status::ActiveCommit;
use crate::reconcile::trigger::Trigger;

/// What asks for a commit to be made live.
#[derive(Clone, Copy, Debug)]
pub(in crate::reconcile) enum Cause {
    /// The branch is at it, or an operator pinned it and it arrived late.
    Followed(Trigger),
    /// The branch is at a commit that is not valid, and an operator resumed: the newest valid one is made
    /// live.
    Fallback(CommitId),
    /// A write pushed it.
    Written,
    /// An operator pinned it.
    Pinned,
    /// It was live before the restart.
    Recovered,
}

/// Why a valid commit is not made live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::reconcile) enum Withheld {
    /// An operator pinned another.
    #[error("an operator pinned {0}")]
    Pinned(CommitId),
    /// It waits for an operator, or for a remote that may lag.
    #[error("it waits for an operator, or for a remote that lags")]
    Held,
    /// A newer commit took its place.
    #[error("it is superseded by {0}")]
    Superseded(CommitId),
    /// Whether the branch still has it cannot be read.
    #[error("the history of the branch cannot be read")]
    Unread,
    /// A file of keys changed since it was verified.
    #[error("keys changed since it was verified")]
    KeysChanged,
    /// The daemon stops.
    #[error("the daemon is stopping")]
    Stopping,
}

/// What follows for a write that was pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reconcile) enum Pushed {
    /// It is live already: the branch was fetched while the remote finished the push.
    IsLive,
    /// It may be live, unless something withholds it.
    MayActivate,
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
    /// Returns an error if the branch went to a commit that lacks it, or its history was not read or cannot be read.
    pub(in crate::reconcile) fn pushed(
        &mut self,
        commit: CommitId,
        ancestry: &KnownAncestry,
        now: Now,
    ) -> Result<Pushed, Withheld> {
        let is_live = self.live.is_some_and(|live| ancestry.is_ancestor(commit, live));
        let head = self.head().filter(|_| !is_live);
        let is_on_branch = head.is_some_and(|head| ancestry.is_ancestor(commit, head));
        let lacking = head.filter(|it| !is_on_branch && !ancestry.is_ancestor(*it, commit));
        if ancestry.gap().is_some() {
            return Err(Withheld::Unread);
        }
        if is_live {
            return Ok(Pushed::IsLive);
        }
        if let Some(head) = lacking {
            return Err(Withheld::Superseded(head));
        }
        // What others put on top of it follows.
        if !is_on_branch {
            self.note_written(commit, now);
        }
        Ok(Pushed::MayActivate)
    }

    /// A commit that was pushed from here waits for the builder: it is to be verified again.
    pub(in crate::reconcile) fn verify_pushed_again(&mut self, commit: CommitId, now: Now) {
        let candidate = Candidate::new(commit, Trigger::Write, now.monotonic);
        self.candidate.get_or_insert(candidate);
    }

    /// The branch is at a commit that was pushed from here.
    pub(in crate::reconcile) fn note_written(&mut self, commit: CommitId, now: Now) {
        self.published += 1;
        self.note_contact(commit, now);
        self.last_change = Some(now.wall);
        self.candidate = None;
        self.expected.retain(|it| it.commit != commit);
        // The remote took the commit, so what others announced is not on the branch, or will be on top of it.
        self.expected.iter_mut().for_each(|it| it.may_be_gone = true);
    }

    /// Decides whether a valid commit may be live now; one that may not is held.
    ///
    /// A pin, a held rewrite or a newer head may have come while it was built or pushed.
    ///
    /// # Errors
    ///
    /// Returns what withholds it.
    pub(in crate::reconcile) fn may_activate(
        &mut self,
        commit: CommitId,
        cause: Cause,
        now: Now,
    ) -> Result<(), Withheld> {
        if self.stopping {
            return Err(Withheld::Stopping);
        }
        match cause {
            Cause::Pinned => Ok(()),
            Cause::Recovered => self.may_recover(commit),
            Cause::Written => self.may_activate_written(commit, now),
            Cause::Fallback(head) => self.may_activate_behind(commit, head),
            Cause::Followed(_) => self.may_activate_followed(commit),
        }
    }

    fn may_recover(&self, commit: CommitId) -> Result<(), Withheld> {
        match (self.pinned_instead_of(commit), self.live) {
            (Some(pinned), _) => Err(Withheld::Pinned(pinned)),
            (None, Some(live)) => Err(Withheld::Superseded(live)),
            (None, None) => Ok(()),
        }
    }

    fn may_activate_written(&mut self, commit: CommitId, now: Now) -> Result<(), Withheld> {
        let Some(pinned) = self.pinned_instead_of(commit) else { return Ok(()) };
        let held = Candidate::new(commit, Trigger::Write, now.monotonic);
        self.candidate.get_or_insert(held.with(Progress::Held));
        Err(Withheld::Pinned(pinned))
    }

    fn may_activate_behind(&self, commit: CommitId, head: CommitId) -> Result<(), Withheld> {
        if let Some(pinned) = self.pinned_instead_of(commit) {
            return Err(Withheld::Pinned(pinned));
        }
        match self.candidate.as_ref().map(|it| it.commit) {
            Some(candidate) if candidate == head => Ok(()),
            Some(newer) => Err(Withheld::Superseded(newer)),
            None => Err(Withheld::Superseded(head)),
        }
    }

    fn may_activate_followed(&mut self, commit: CommitId) -> Result<(), Withheld> {
        let wanted = self.candidate.as_ref().map(|it| it.commit);
        if let Some(newer) = wanted.filter(|it| *it != commit) {
            return Err(Withheld::Superseded(newer));
        }
        if self.pinned() == Some(commit) {
            return Ok(());
        }
        let is_rewrite_held = self.policy.on_rewrite == OnRewrite::Hold
            && self.rewritten.is_some_and(|it| it.to == commit && !it.accepted);
        let lags = self.behind.is_some_and(|it| it.head == commit);
        let withheld = match (self.pinned(), wanted, self.head()) {
            (Some(pinned), ..) => Withheld::Pinned(pinned),
            // A write replaced it meanwhile.
            (None, None, Some(head)) => Withheld::Superseded(head),
            (None, Some(_), _) if lags || is_rewrite_held => Withheld::Held,
            (None, ..) => return Ok(()),
        };
        if let Some(candidate) = &mut self.candidate {
            candidate.progress = Progress::Held;
        }
        Err(withheld)
    }

    /// A commit is live.
    pub(in crate::reconcile) fn activated(
        &mut self,
        commit: CommitId,
        active: Option<ActiveCommit>,
        signer: Option<Signer>,
    ) {
        self.live = Some(commit);
        self.left_pin = self.left_pin.filter(|it| *it == commit);
        self.active = active;
        self.verified = signer.map(Ok);
        if self.is_candidate(commit) {
            self.candidate = None;
        }
        self.behind = None;
        self.confirmed_rewind = None;
        self.unrecovered = None;
        self.objects.settle();
    }

    fn pinned_instead_of(&self, commit: CommitId) -> Option<CommitId> {
        self.pinned().filter(|it| *it != commit)
    }
}
