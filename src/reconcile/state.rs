//! The state of the reconcile loop: one value, without IO, locks, threads or clocks.
//!
//! The loop hands in what happened (a fetch ended, a commit was built, an operator pinned one) and
//! when; what has to be done next is returned or read from here. The conditions of the status are
//! computed from this value alone.

mod accept;
mod activation;
mod ancestry;
mod build;
mod conditions;
mod fetch;
mod no_snapshot;
mod object_trouble;
mod objects;
mod recovery;
#[cfg(test)]
mod tests;
mod unrecovered;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;

pub(super) use self::accept::NotAccepted;
pub(super) use self::activation::{Cause, Pushed, Withheld};
pub(super) use self::ancestry::{AncestryAnswer, AncestryGap, CommitPair, KnownAncestry};
pub(super) use self::build::{BuildJob, reason_of};
pub(super) use self::fetch::{FetchBegan, FetchedHead, Following, Outdated, SignatureVerdict};
pub use self::no_snapshot::NoSnapshotCause;
use self::object_trouble::ObjectTrouble;
pub(super) use self::unrecovered::RecoveryFault;
use self::unrecovered::Unrecovered;
use super::attribution::Pin;
use super::boot_time::BootTime;
use super::clock::Now;
use super::policy::{OnRewrite, OnStale, Policy};
use super::status::{ActiveCommit, Condition, ConditionKind, FailedCommit, ObservedCommit, Reason};
use super::trigger::Trigger;
use crate::git::{FetchFailure, SignatureFault, Signer};
use crate::model::CommitId;

/// What the stages of the loop found, and what operators and clients asked for.
#[derive(Clone, Debug)]
pub(super) struct ReconcileState {
    policy: Policy,
    source: SourceKind,
    started: BootTime,
    /// The live commit.
    live: Option<CommitId>,
    pub(super) active: Option<ActiveCommit>,
    pub(super) observed: Option<ObservedCommit>,
    /// The newest commit, as long as it is not live.
    pub(super) candidate: Option<Candidate>,
    pin: Option<Pin>,
    /// Whether the journal lost the pin, and it is not known yet whether the repository has its commit.
    is_pin_unsettled: bool,
    /// The pinned commit that an operator resumed from, as long as it is live.
    left_pin: Option<CommitId>,
    /// The commit that was live before the restart, with why it is not live now.
    unrecovered: Option<Unrecovered>,
    pub(super) last_attempt: Option<Timestamp>,
    pub(super) last_change: Option<Timestamp>,
    /// When the branch was last fetched.
    pub(super) last_contact: Option<BootTime>,
    /// When it was last fetched before the restart.
    earlier_contact: Option<EarlierContact>,
    pub(super) failure: Option<(FetchFailure, String)>,
    pub(super) failures: u32,
    rewritten: Option<Rewrite>,
    behind: Option<Behind>,
    /// The ancestor of the live commit that the remote still showed when `rewind_grace` was over.
    confirmed_rewind: Option<CommitId>,
    pub(super) expected: Vec<Expected>,
    /// A commit that a webhook announced and that the remote never showed.
    invisible: Option<CommitId>,
    pub(super) storage: Option<(Reason, String)>,
    objects: ObjectTrouble,
    /// Why refs beside the watched one are not fetched.
    pub(super) skipped_refs: Option<(Reason, String)>,
    /// Whether refs beside the watched one are to be fetched now.
    pub(super) other_refs_requested: bool,
    /// Since when the branch is being fetched.
    fetching: Option<Instant>,
    /// Since when a write is being pushed.
    pushing: Option<Instant>,
    /// How many writes were published; a fetch that began before one is out of date.
    published: u64,
    pub(super) check_ins: CheckInsTrouble,
    verified: Option<Result<Signer, SignatureFault>>,
    /// The commit behind a candidate that waits no longer for an operator: its key was removed.
    unsigned_waiting: Option<CommitId>,
    /// Why the branch is to be fetched now.
    pub(super) requested_fetch: Option<Trigger>,
    pub(super) stopping: bool,
    /// As computed last: the time of a transition is kept while nothing changes.
    conditions: BTreeMap<ConditionKind, Condition>,
}

/// Whether the branch comes from a remote, which may have replicas that lag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceKind {
    /// A repository of this machine.
    Local,
    /// A remote.
    Remote,
}

/// What is wrong with the store of check-ins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckInsTrouble {
    /// Why they cannot be kept or read.
    pub failing: Option<(Reason, String)>,
    /// The message about a damaged file that was put aside.
    pub put_aside: Option<String>,
}

/// The newest commit, on its way.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) commit: CommitId,
    pub(super) trigger: Trigger,
    /// When it was first announced or seen.
    pub(super) since: Instant,
    pub(super) progress: Progress,
    pub(super) fallback: Fallback,
    /// The valid commit behind it that waited for an operator before it came.
    waiting: Option<CommitId>,
    /// Why it could not be read, while it is built again.
    unread: Option<(FailedCommit, Reason)>,
    /// What is wrong with its signature, if it was rejected for that.
    fault: Option<SignatureFault>,
}

/// What is live where a candidate is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fallback {
    /// What was live before.
    Live,
    /// The newest valid commit behind it: an operator resumed.
    NewestValid,
}

impl Candidate {
    /// Returns a candidate that waits for the builder.
    fn new(commit: CommitId, trigger: Trigger, since: Instant) -> Self {
        let (progress, fallback) = (Progress::Pending, Fallback::Live);
        let (waiting, unread, fault) = (None, None, None);
        Self { commit, trigger, since, progress, fallback, waiting, unread, fault }
    }

    /// Returns why it was rejected, also while it is built again since it could not be read.
    pub(super) fn failure(&self) -> Option<(&FailedCommit, Reason)> {
        match &self.progress {
            Progress::Failed(failed, reason) => Some((failed, *reason)),
            Progress::Pending | Progress::Building => {
                self.unread.as_ref().map(|(failed, reason)| (failed, *reason))
            }
            Progress::Held => None,
        }
    }

    /// Returns whether it was rejected since it could not be read.
    fn is_unread(&self) -> bool {
        matches!(self.progress, Progress::Failed(_, Reason::CorruptObjects))
    }

    /// Returns it with other progress.
    fn with(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }
}

/// How far a candidate has come.
#[derive(Clone, Debug)]
pub(super) enum Progress {
    /// It waits for the builder.
    Pending,
    /// The builder has it.
    Building,
    /// It was rejected.
    Failed(FailedCommit, Reason),
    /// It is valid and waits for an operator, or for a remote that may lag.
    Held,
}

/// The branch lost the commit that it was at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rewrite {
    from: CommitId,
    to: CommitId,
    /// Whether it may be live: an operator accepts it, or it contains the live commit.
    accepted: bool,
}

/// The remote shows an ancestor of the live commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Behind {
    head: CommitId,
    since: Instant,
}

/// A fetch of before the restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EarlierContact {
    /// When it was, by the clock of this machine.
    time: Timestamp,
    /// How long before the start.
    age: Duration,
}

/// A commit that a webhook announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Expected {
    pub(super) commit: CommitId,
    since: Instant,
    tries: usize,
    /// Whether a force-push may have taken it off the branch: then the remote need not show it again.
    may_be_gone: bool,
}

/// How fresh the answers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// The branch was seen lately, or no `max_staleness` is set.
    Fresh,
    /// It was not seen for so long.
    Stale(Duration, OnStale),
}

impl ReconcileState {
    /// Returns the state of a daemon that starts.
    pub(super) fn new(policy: Policy, source: SourceKind, now: Now) -> Self {
        Self {
            policy,
            source,
            started: now.boot,
            live: None,
            active: None,
            observed: None,
            candidate: None,
            pin: None,
            is_pin_unsettled: false,
            left_pin: None,
            unrecovered: None,
            last_attempt: None,
            last_change: None,
            last_contact: None,
            earlier_contact: None,
            failure: None,
            failures: 0,
            rewritten: None,
            behind: None,
            confirmed_rewind: None,
            expected: Vec::new(),
            invisible: None,
            storage: None,
            objects: ObjectTrouble::default(),
            skipped_refs: None,
            other_refs_requested: false,
            fetching: None,
            pushing: None,
            published: 0,
            check_ins: CheckInsTrouble::default(),
            verified: None,
            unsigned_waiting: None,
            requested_fetch: None,
            stopping: false,
            conditions: BTreeMap::new(),
        }
    }

    /// Returns the live commit.
    pub(super) fn live(&self) -> Option<CommitId> {
        self.live
    }

    /// Returns the newest commit of the branch, as far as it was fetched.
    pub(super) fn head(&self) -> Option<CommitId> {
        self.observed.map(|it| it.commit)
    }

    /// Returns the commit that an operator pinned.
    pub(super) fn pinned(&self) -> Option<CommitId> {
        self.pin.as_ref().map(|it| it.commit)
    }

    /// Returns the pin, with who made it and why.
    pub(super) fn pin(&self) -> Option<&Pin> {
        self.pin.as_ref()
    }

    /// Returns the valid commit that is not live yet.
    pub(super) fn held(&self) -> Option<CommitId> {
        let held = self.candidate.as_ref().filter(|it| matches!(it.progress, Progress::Held));
        held.map(|it| it.commit)
    }

    /// Returns the valid commit that waits for an operator or for the remote: the candidate, or the one behind a
    /// candidate that is not valid, which a resume makes live.
    pub(super) fn waiting(&self) -> Option<CommitId> {
        let is_signed = |it: &CommitId| self.unsigned_waiting != Some(*it);
        self.held().or_else(|| self.waiting_if_signed().filter(is_signed))
    }

    /// Returns the commit that waits as long as its signature is good.
    pub(super) fn waiting_if_signed(&self) -> Option<CommitId> {
        let candidate = self.candidate.as_ref()?;
        let is_held = matches!(candidate.progress, Progress::Held);
        // An ancestor of the live commit waited for the remote alone.
        let waits = self.pin.is_some() || self.is_rewrite_held();
        if is_held { Some(candidate.commit) } else { candidate.waiting.filter(|_| waits) }
    }

    /// Returns whether the remote showed a commit behind the live one.
    pub(super) fn is_behind(&self) -> bool {
        self.behind.is_some()
    }

    /// Returns whether the branch was rewritten and an operator has to accept it.
    fn is_rewrite_held(&self) -> bool {
        self.policy.on_rewrite == OnRewrite::Hold && self.rewritten.is_some_and(|it| !it.accepted)
    }

    /// Returns the candidate that was rejected.
    pub(super) fn last_failed(&self) -> Option<&FailedCommit> {
        self.candidate.as_ref()?.failure().map(|(failed, _)| failed)
    }

    /// Returns the candidate that was rejected since it could not be read: whether it may be live is not decided.
    pub(super) fn unread(&self) -> Option<&FailedCommit> {
        self.last_failed().filter(|_| self.candidate.as_ref().is_some_and(Candidate::is_unread))
    }

    /// Returns whether a candidate waits for the builder, or the builder has it.
    pub(super) fn is_deciding(&self) -> bool {
        let progress = self.candidate.as_ref().map(|it| &it.progress);
        matches!(progress, Some(Progress::Pending | Progress::Building))
    }

    /// Returns whether it is still open if a commit will be live.
    pub(super) fn is_undecided(&self) -> bool {
        let may_be_fetched = self.failure.is_none();
        let on_its_way = match &self.candidate {
            // It is from the mirror, and the branch may have a newer one.
            Some(_) => self.is_deciding() || (may_be_fetched && self.last_contact.is_none()),
            None => may_be_fetched,
        };
        self.active.is_none() && on_its_way && !self.stopping
    }

    /// Returns how fresh the answers are.
    pub(super) fn freshness(&self, now: Now) -> Freshness {
        let age = self.staleness(now);
        match self.policy.max_staleness {
            Some(limit) if age > limit => Freshness::Stale(age, self.policy.on_stale),
            _ => Freshness::Fresh,
        }
    }

    /// Returns for how long the branch was not seen, across restarts; since the start if it never was.
    pub(super) fn staleness(&self, now: Now) -> Duration {
        match self.last_contact {
            Some(contact) => now.age_of(contact),
            None => {
                let before = self.earlier_contact.map_or(Duration::ZERO, |it| it.age);
                before.saturating_add(now.age_of(self.started))
            }
        }
    }

    /// Returns when the branch was last seen, as the clock of this machine counts now.
    pub(super) fn last_seen(&self, now: Now) -> Option<Timestamp> {
        let was_seen = self.last_contact.is_some() || self.earlier_contact.is_some();
        was_seen.then(|| now.ago(self.staleness(now)))
    }

    /// The commit was pinned before the restart.
    pub(super) fn set_pinned(&mut self, pin: Option<Pin>) {
        self.pin = pin;
    }

    /// The commit was pinned before the restart. The journal lost that, and whether the repository has the commit is not
    /// known yet.
    pub(super) fn set_unsettled_pin(&mut self, pin: Pin) {
        self.pin = Some(pin);
        self.is_pin_unsettled = true;
    }

    /// Returns whether it is not known yet whether the repository has the commit of a pin that the journal lost.
    pub(super) fn is_pin_unsettled(&self) -> bool {
        self.is_pin_unsettled
    }

    /// It is known what becomes of a pin that the journal lost, unless an operator has decided since.
    pub(super) fn settle_pin(&mut self, pin: Option<Pin>) {
        if std::mem::take(&mut self.is_pin_unsettled) {
            self.pin = pin;
        }
    }

    /// An operator pins a commit. A head that is live gives way to it and waits, whether the remote can be
    /// fetched or not.
    pub(super) fn pin_now(&mut self, pin: Pin, now: Now) {
        let pinned = pin.commit;
        // A commit that an operator resumed from need not be one of the branch.
        let is_followed = self.pin.is_none() && self.left_pin.is_none();
        let followed = self.live.filter(|it| is_followed && *it != pinned);
        self.pin = Some(pin);
        self.is_pin_unsettled = false;
        self.left_pin = None;
        if let Some(candidate) = self.candidate.as_mut().filter(|_| self.rewritten.is_none()) {
            candidate.waiting = followed.or(candidate.waiting);
        }
        if let Some(head) = self.head().filter(|it| *it != pinned && self.live == Some(*it)) {
            let candidate = Candidate::new(head, Trigger::Manual, now.monotonic);
            self.candidate = Some(candidate.with(Progress::Held));
        }
    }

    /// An operator has the branch followed again, also where it left its history.
    pub(super) fn resumed(&mut self, now: Now) {
        self.is_pin_unsettled = false;
        let left = self.pin.take().map(|it| it.commit);
        self.left_pin = left.or(self.left_pin).filter(|it| self.live == Some(*it));
        self.behind = None;
        // A rewrite that is followed is acknowledged.
        self.rewritten = self.rewritten.filter(|_| self.live != self.head());
        if let Some(rewrite) = &mut self.rewritten {
            rewrite.accepted = true;
        }
        let live = self.active.as_ref().map(|it| it.commit);
        if let Some(head) = self.head().filter(|it| Some(*it) != live) {
            let candidate = Candidate::new(head, Trigger::Manual, now.monotonic);
            self.candidate = Some(Candidate { fallback: Fallback::NewestValid, ..candidate });
        }
        self.requested_fetch = Some(Trigger::Manual);
    }

    /// A push begins.
    pub(super) fn push_began(&mut self, now: Now) {
        self.pushing = Some(now.monotonic);
    }

    /// No push is under way any more.
    pub(super) fn push_ended(&mut self) {
        self.pushing = None;
    }
}
