//! Where the branch is: what follows when it was fetched.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    Behind, Candidate, EarlierContact, Expected, Fallback, KnownAncestry, Progress, ReconcileState,
    Rewrite, SourceKind,
};
use crate::git::{FetchError, SignatureFault, Signer};
use crate::model::CommitId;
use crate::reconcile::clock::Now;
use crate::reconcile::policy::OnRewrite;
use crate::reconcile::schedule;
use crate::reconcile::status::{ObservedCommit, Reason};
use crate::reconcile::trigger::Trigger;

/// More commits than are pushed before the first fetch; a flood of webhooks must not fill memory.
const MOST_EXPECTED: usize = 64;

/// The shortest pause before the next fetch while the remote lags.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// What was published when a fetch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reconcile) struct FetchBegan(u64);

/// A write was published since the fetch began: what it saw is older than what answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reconcile) struct Outdated;

/// Who signed a commit, if that is demanded, or what is wrong with its signature.
pub(in crate::reconcile) type SignatureVerdict = Result<Option<Signer>, SignatureFault>;

/// What a fetch found.
pub(in crate::reconcile) struct FetchedHead<'a> {
    pub(in crate::reconcile) began: FetchBegan,
    pub(in crate::reconcile) head: CommitId,
    pub(in crate::reconcile) ancestry: &'a KnownAncestry,
    /// Who signed the live commit; a key may have been removed since.
    pub(in crate::reconcile) signed: Option<SignatureVerdict>,
}

/// What is known when a head is followed.
pub(in crate::reconcile) struct Following<'a> {
    pub(in crate::reconcile) began: FetchBegan,
    pub(in crate::reconcile) head: CommitId,
    pub(in crate::reconcile) trigger: Trigger,
    pub(in crate::reconcile) ancestry: &'a KnownAncestry,
    /// The commit that was live last, by the journal: it knows also where the mirror was lost.
    pub(in crate::reconcile) live_last: Option<CommitId>,
    /// The commit of the branch that was live last, by the journal: a pinned one says nothing of the
    /// branch, which is compared with the live commit of before the pin.
    pub(in crate::reconcile) followed_last: Option<CommitId>,
    /// The head that an operator accepted although it does not descend from the live commit.
    pub(in crate::reconcile) accepted: Option<CommitId>,
    /// The head at which an operator resumed, as long as no commit was made live since.
    pub(in crate::reconcile) resumed_at: Option<CommitId>,
    /// The pinned commit if it has arrived and is not live yet: the mirror was lost.
    pub(in crate::reconcile) pinned_late: Option<CommitId>,
    /// Whether the keys decide otherwise about the candidate, or about what a resume activates behind it.
    pub(in crate::reconcile) has_new_verdict: bool,
}

impl ReconcileState {
    /// A fetch begins.
    pub(in crate::reconcile) fn fetch_began(&mut self, now: Now) -> FetchBegan {
        self.last_attempt = Some(now.wall);
        self.fetching = Some(now.monotonic);
        self.published()
    }

    /// Returns what counts as the beginning of a fetch now.
    pub(in crate::reconcile) fn published(&self) -> FetchBegan {
        FetchBegan(self.published)
    }

    /// The remote has answered, or failed to.
    pub(in crate::reconcile) fn fetch_ended(&mut self) {
        self.fetching = None;
    }

    /// A fetch failed.
    pub(in crate::reconcile) fn fetch_failed(&mut self, error: &FetchError) {
        self.failures = self.failures.saturating_add(1);
        self.failure = Some((error.failure, error.message.clone()));
        // Commits that are here answer without the remote, and what is damaged needs it.
        if !self.is_damaged() {
            self.retry_unread();
        }
    }

    /// Signatures were checked again without a fetch: that of the commit that was live then, and those of a candidate
    /// about which the keys decide otherwise now. The candidate is decided again.
    pub(in crate::reconcile) fn verified_again(
        &mut self,
        signed: Option<(CommitId, SignatureVerdict)>,
        changed: Option<CommitId>,
    ) {
        if let Some((_, verdict)) = signed.filter(|(live, _)| self.live == Some(*live)) {
            self.verified = verdict.transpose();
        }
        if let Some(commit) = changed
            && (self.signature_fault(commit).is_some()
                || self.held() == Some(commit)
                || self.lacks_fallback(commit))
            && let Some(candidate) = &mut self.candidate
        {
            candidate.progress = Progress::Pending;
        }
    }

    /// Checks that no write was published since a fetch began.
    pub(in crate::reconcile) fn check_current(&self, began: FetchBegan) -> Result<(), Outdated> {
        if began == self.published() { Ok(()) } else { Err(Outdated) }
    }

    /// The branch was fetched, and is at a commit.
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if a write was published since the fetch began.
    pub(super) fn fetched(&mut self, fetched: FetchedHead<'_>, now: Now) -> Result<(), Outdated> {
        let FetchedHead { began, head, ancestry, signed } = fetched;
        self.check_current(began)?;
        let before = self.head();
        self.note_visible(head, ancestry);
        self.note_contact(head, now);
        if let Some(signed) = signed {
            self.verified = signed.transpose();
        }
        if self.invisible.is_some_and(|it| ancestry.is_visible(it, head)) {
            self.invisible = None;
        }
        if let Some(before) = before.filter(|it| *it != head) {
            self.note_move(before, head, ancestry);
        }
        Ok(())
    }

    /// Drops the announced commits that a head contains. Where the branch went on, those that were announced before the
    /// newest of them, or all where it contains none, were in it or were replaced.
    fn note_visible(&mut self, head: CommitId, ancestry: &KnownAncestry) {
        let is_visible = |it: &Expected| ancestry.is_visible(it.commit, head);
        let visible: Vec<bool> = self.expected.iter().map(is_visible).collect();
        if self.head() != Some(head) {
            let newest = visible.iter().rposition(|it| *it);
            let older = newest.unwrap_or(self.expected.len());
            self.expected.iter_mut().take(older).for_each(|it| it.may_be_gone = true);
        }
        let mut visible = visible.into_iter();
        self.expected.retain(|_| visible.next() == Some(false));
    }

    /// Notes that the branch went from one commit to another.
    fn note_move(&mut self, before: CommitId, head: CommitId, ancestry: &KnownAncestry) {
        // What it lost when it is back at the live commit was never live, such as a rewrite that was held.
        let is_back = self.live == Some(head) && self.pin.is_none() && self.left_pin.is_none();
        let is_lost =
            !is_back && !ancestry.is_ancestor(before, head) && !ancestry.is_ancestor(head, before);
        let answers =
            |it: &Rewrite| self.live.is_some_and(|live| ancestry.is_ancestor(it.to, live));
        let accepted = self.rewritten.filter(|it| it.accepted && !answers(it));
        self.rewritten = match accepted.filter(|it| ancestry.is_ancestor(it.to, head)) {
            // What an operator accepted was not live yet when the branch went on.
            Some(rewrite) => Some(Rewrite { to: head, ..rewrite }),
            None => is_lost.then_some(Rewrite { from: before, to: head, accepted: false }),
        };
    }

    /// The signature of a commit that waits was checked again: it waits only while that is good.
    pub(in crate::reconcile) fn waiting_verified(&mut self, commit: CommitId, is_signed: bool) {
        self.unsigned_waiting = (!is_signed).then_some(commit);
    }

    /// Decides whether the builder gets a head of the branch, and whether it may be live then. Returns
    /// whether there is a new candidate.
    ///
    /// # Errors
    ///
    /// Returns an error, and changes nothing, if a write was published since the fetch began.
    pub(super) fn follow(&mut self, following: &Following<'_>, now: Now) -> Result<bool, Outdated> {
        let Following { began, head, trigger, ancestry, .. } = *following;
        self.check_current(began)?;
        let is_pinned = self.pin.is_some();
        let last = self.followed_before(following);
        if self.live == Some(head) {
            self.left_pin = None;
            self.accept_rewrite(head);
            self.settle();
            return Ok(false);
        }
        // A resume may have come since it was read.
        let pinned_late = following.pinned_late.filter(|it| self.pinned() == Some(*it));
        let head = pinned_late.unwrap_or(head);
        let known = self.candidate.as_ref().filter(|it| it.commit == head);
        let (is_under_way, is_waiting, was_rejected) = match known.map(|it| &it.progress) {
            None => (false, false, false),
            Some(Progress::Pending | Progress::Building) => (true, false, false),
            Some(Progress::Held) => (false, true, false),
            // What kept it from being read may have passed: it is built again.
            Some(Progress::Failed(_, Reason::CorruptObjects)) => (false, false, false),
            Some(Progress::Failed(..)) => (false, false, true),
        };
        if is_under_way {
            return Ok(false);
        }
        let from = last.filter(|last| *last != head);
        let is_rewound = from.is_some_and(|last| ancestry.is_ancestor(head, last));
        let is_off = from.is_some_and(|last| !is_rewound && !ancestry.is_ancestor(last, head));
        // Waiting for a replica gains nothing where no commit is live.
        let lags =
            is_rewound && self.live.is_some() && !is_pinned && following.accepted != Some(head);
        let lost = from.filter(|_| is_off || (is_rewound && !is_pinned));
        if lost.is_none() {
            self.accept_rewrite(head);
        }
        // Each is noted, whatever else holds the head.
        let lags = self.holds_rewind(head, lags, now);
        let is_rewritten = self.holds_rewrite(head, lost, following.accepted);
        let is_held = is_pinned || lags || is_rewritten;
        // What is wrong with a rejected commit does not change, nor what holds a valid one, but for the keys.
        let is_decided = was_rejected || (is_held && is_waiting);
        if is_decided && !following.has_new_verdict {
            return Ok(false);
        }
        let since = self.first_evidence(head).unwrap_or(now.monotonic);
        let fallback = self.fallback(head, following);
        let waiting = self.waiting_before(head, following);
        let unread = self.candidate.as_ref().filter(|it| it.commit == head);
        let unread = unread.and_then(|it| it.failure().map(|(it, reason)| (it.clone(), reason)));
        let unread = unread.filter(|(_, reason)| *reason == Reason::CorruptObjects);
        // A held commit is built all the same: whether it is valid is worth knowing.
        let candidate = Candidate::new(head, trigger, since);
        self.candidate = Some(Candidate { fallback, waiting, unread, ..candidate });
        Ok(true)
    }

    /// Returns the valid commit that waits and that a head contains; the head itself only while its signature is good.
    fn waiting_before(&self, head: CommitId, following: &Following<'_>) -> Option<CommitId> {
        let is_refused = following.has_new_verdict && self.held() == Some(head);
        let waiting = self.waiting_if_signed().filter(|it| !(is_refused && *it == head));
        waiting.filter(|it| following.ancestry.is_ancestor(*it, head))
    }

    /// Returns the commit of the branch that was live last: not one that is pinned, or was until an operator resumed.
    fn followed_before(&mut self, following: &Following<'_>) -> Option<CommitId> {
        let is_pinned = self.pin.is_some();
        if !is_pinned && following.resumed_at.is_some() {
            // The operator may have resumed before a restart.
            self.left_pin = self.live.filter(|it| following.followed_last != Some(*it));
        }
        match is_pinned || self.left_pin.is_some() {
            true => following.followed_last,
            false => self.live.or(following.live_last),
        }
    }

    /// Returns what is live if a head is not valid. A resume holds until a commit is live after it, also
    /// through a restart and where the branch goes on from the head at which the operator resumed.
    fn fallback(&self, head: CommitId, following: &Following<'_>) -> Fallback {
        let candidate = self.candidate.as_ref().filter(|it| it.fallback == Fallback::NewestValid);
        let mut resumed_at = following.resumed_at.into_iter().chain(candidate.map(|it| it.commit));
        match resumed_at.any(|it| following.ancestry.is_ancestor(it, head)) {
            true => Fallback::NewestValid,
            false => Fallback::Live,
        }
    }

    /// A webhook announced a commit, which may have been a head before: a delivery may be late, or come twice.
    pub(in crate::reconcile) fn expect_commit(
        &mut self,
        commit: CommitId,
        was_head: bool,
        now: Now,
    ) {
        let is_known =
            self.head() == Some(commit) || self.expected.iter().any(|it| it.commit == commit);
        if !is_known && self.expected.len() < MOST_EXPECTED {
            self.expected.push(Expected {
                commit,
                since: now.monotonic,
                tries: 0,
                may_be_gone: was_head,
            });
        }
    }

    /// Returns how long to wait until the next fetch, and the last commit that webhooks announced, that the remote never
    /// showed and that is not expected any more.
    pub(in crate::reconcile) fn next_fetch(
        &mut self,
        interval: Duration,
        chance: f64,
        now: Now,
    ) -> (Duration, Option<CommitId>) {
        let mut wait = match &self.failure {
            None => schedule::after_success(interval, chance),
            Some((failure, _)) => {
                schedule::after_failure(interval, *failure, self.failures, chance)
            }
        };
        if let Some(behind) = self.behind {
            let left = self.policy.rewind_grace.saturating_sub(now.since(behind.since));
            wait = wait.min(left.max(SHORTEST_PAUSE));
        }
        let count = self.expected.len();
        for expected in &mut self.expected {
            let age = now.since(expected.since);
            while schedule::next_try_for_expected(expected.tries).is_some_and(|at| at <= age) {
                expected.tries += 1;
            }
            if let Some(at) = schedule::next_try_for_expected(expected.tries) {
                wait = wait.min(schedule::until_expected(at.saturating_sub(age), count));
            }
        }
        let (expected, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.expected)
            .into_iter()
            .partition(|it| schedule::next_try_for_expected(it.tries).is_some());
        self.expected = expected;
        let gone = gone.iter().rfind(|it| !it.may_be_gone).map(|it| it.commit);
        self.invisible = gone.or(self.invisible);
        (wait, gone)
    }

    /// Notes that the branch is at a commit.
    pub(super) fn note_contact(&mut self, head: CommitId, now: Now) {
        if self.head() != Some(head) {
            self.last_change = Some(now.wall);
            // The remote shows what is newer than what it lacked.
            self.invisible = None;
        }
        self.observed = Some(ObservedCommit { commit: head, fetched_at: now.wall });
        self.last_contact = Some(now.boot);
        self.failure = None;
        self.failures = 0;
    }

    /// The branch was last seen at a time before the restart. A time that has not come yet is taken for
    /// now: the clock was set back.
    pub(in crate::reconcile) fn recovered_contact(&mut self, time: Timestamp, now: Now) {
        let age = Duration::try_from(now.wall.duration_since(time)).unwrap_or_default();
        self.earlier_contact = Some(EarlierContact { time, age });
    }

    /// Returns when the branch was last seen, as the clock of this machine showed it then.
    pub(in crate::reconcile) fn last_contact_time(&self) -> Option<Timestamp> {
        let observed = self.observed.map(|it| it.fetched_at);
        observed.or(self.earlier_contact.map(|it| it.time))
    }

    /// The mirror is at a commit that an earlier run fetched.
    pub(super) fn recovered_head(&mut self, observed: ObservedCommit) {
        self.observed = Some(observed);
    }

    /// The head of the branch is live.
    fn settle(&mut self) {
        self.candidate = None;
        self.behind = None;
        self.confirmed_rewind = None;
        if self.rewritten.is_some_and(|it| Some(it.to) != self.head()) {
            self.rewritten = None;
        }
    }

    /// A rewritten branch that contains the live commit takes nothing away: what it lost was never
    /// live, and no operator is needed.
    fn accept_rewrite(&mut self, head: CommitId) {
        if let Some(rewrite) = self.rewritten.as_mut().filter(|it| it.to == head) {
            rewrite.accepted = true;
        }
    }

    /// Returns when a commit was announced.
    fn first_evidence(&self, commit: CommitId) -> Option<std::time::Instant> {
        self.expected.iter().find(|it| it.commit == commit).map(|it| it.since)
    }

    /// Returns whether a head that is older than the live commit is taken for a replica's lag: once, until the
    /// branch moves.
    fn holds_rewind(&mut self, head: CommitId, is_rewound: bool, now: Now) -> bool {
        // A repository of this machine has no replicas.
        if !is_rewound || self.source == SourceKind::Local {
            self.behind = None;
            self.confirmed_rewind = None;
            return false;
        }
        if self.confirmed_rewind == Some(head) {
            return false;
        }
        let behind = match self.behind {
            Some(behind) if behind.head == head => behind,
            _ => Behind { head, since: now.monotonic },
        };
        let lags = now.since(behind.since) < self.policy.rewind_grace;
        self.behind = lags.then_some(behind);
        self.confirmed_rewind = (!lags).then_some(head);
        lags
    }

    /// Returns whether a head that lacks the live commit waits for an operator.
    fn holds_rewrite(
        &mut self,
        head: CommitId,
        live: Option<CommitId>,
        accepted: Option<CommitId>,
    ) -> bool {
        let Some(live) = live else { return false };
        let rewrite = match self.rewritten {
            Some(rewrite) if rewrite.to == head => rewrite,
            _ => Rewrite { from: live, to: head, accepted: accepted == Some(head) },
        };
        if self.behind.is_none() {
            self.rewritten = Some(rewrite);
        }
        self.policy.on_rewrite == OnRewrite::Hold && !rewrite.accepted
    }
}
