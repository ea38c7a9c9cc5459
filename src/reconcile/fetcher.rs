//! The first stage: fetches the branch, and passes its head to the builder.
#![expect(clippy::disallowed_methods, reason = "ages are measured by the clock")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::ancestry::{decide_by_history, read_ancestry};
use super::clock::Now;
use super::journal::Event;
use super::other_refs::OtherRefs;
use super::pull_requests::PullRequestChecker;
use super::recorder::{Recorder, RecoveredPin};
use super::refetch::refetch_if_due;
use super::schedule;
use super::shared_state::SharedState;
use super::source::{Fetched, Source};
use super::state::{
    FetchBegan, FetchedHead, Following, KnownAncestry, NotAccepted, SignatureVerdict, SourceKind,
};
use super::status::ObservedCommit;
use super::trigger::Trigger;
use super::verifier::{Trust, Verifier};
use crate::git::{
    CommitPresence, FetchError, FetchFailure, Mirror, ReadError, Repository, SignatureFault,
    VerifyMode,
};
use crate::model::CommitId;
use crate::priority;
use crate::telemetry::Metrics;

/// Fetches the branch: at intervals, and when it is requested.
#[derive(Debug)]
pub(super) struct Fetcher {
    pub(super) source: Arc<Source>,
    pub(super) state: Arc<SharedState>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) verifier: Arc<Verifier>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) other_refs: Arc<OtherRefs>,
    pub(super) pull_requests: Option<Arc<PullRequestChecker>>,
    /// The time between two fetches that nothing requests.
    pub(super) interval: Duration,
    /// Held while the branch is fetched and its head accepted, never while something is pushed.
    pub(super) remote_lock: Mutex<()>,
    /// What the last head was decided by: one that waits for an operator is decided about after every fetch.
    pub(super) ancestry: Mutex<KnownAncestry>,
}

impl Fetcher {
    /// Fetches until the daemon stops.
    pub(super) fn run(&self) {
        let is_requested = self.state.lock().requested_fetch.is_some();
        let mut wait = if is_requested { Duration::ZERO } else { self.pause() };
        let mut requested: Option<Instant> = None;
        while let Some(trigger) = self.wait_for_trigger(Instant::now() + wait, &mut requested) {
            // Agents wait for the first commit that is live.
            if self.state.lock().active.is_some() {
                priority::yield_to_requests();
            }
            if let Err(error) = self.fetch(trigger)
                && !self.state.lock().stopping
            {
                tracing::warn!(%error, "fetch failed");
            }
            wait = self.pause();
        }
    }

    /// Waits until the branch is to be fetched, and returns why; none when the daemon stops.
    /// `requested` is when the last requested fetch began. Blocking.
    fn wait_for_trigger(&self, until: Instant, requested: &mut Option<Instant>) -> Option<Trigger> {
        let mut state = self.state.lock();
        loop {
            if state.stopping {
                return None;
            }
            let now = Instant::now();
            let left = until.saturating_duration_since(now);
            let left = state.until_refetch(now).map_or(left, |it| it.min(left));
            let left = match state.requested_fetch {
                None => left,
                Some(Trigger::Startup) => Duration::ZERO,
                Some(_) => schedule::until_requested(requested.map(|it| it.elapsed())).min(left),
            };
            if left.is_zero() {
                break;
            }
            self.state.wait_for(&mut state, left);
        }
        if state.requested_fetch.is_some_and(|it| it != Trigger::Startup) {
            *requested = Some(Instant::now());
        }
        let retries = state.failure.is_some() || !state.expected.is_empty();
        let own = if retries { Trigger::Retry } else { Trigger::Poll };
        Some(state.requested_fetch.take().unwrap_or(own))
    }

    /// Fetches the branch, and passes its head to the builder if it is a new one. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the branch cannot be fetched.
    pub(super) fn fetch(&self, trigger: Trigger) -> Result<(), FetchError> {
        self.fetch_unless(trigger, |_| false)
    }

    /// Fetches the branch for a write on top of a commit that is live. A head behind that, as a replica that lags shows
    /// it, is an error: the next fetch decides what becomes of it.
    pub(super) fn fetch_on_top_of(&self, tip: CommitId) -> Result<(), FetchError> {
        self.fetch_unless(Trigger::Write, |Fetched { repository, head }| {
            // Where another fetch went on meanwhile, the write is decided again.
            let is_tip = self.state.lock().head() == Some(tip);
            is_tip && *head != tip && repository.is_ancestor(*head, tip).unwrap_or(false)
        })
    }

    fn fetch_unless(
        &self,
        trigger: Trigger,
        lags: impl FnOnce(&Fetched) -> bool,
    ) -> Result<(), FetchError> {
        let _remote = self.remote_lock.lock();
        let began_at = Instant::now();
        let began = self.state.lock().fetch_began(Now::read());
        self.fetch_damaged_again();
        let fetched = self.source.fetch();
        self.state.lock().fetch_ended();
        let is_behind = fetched.as_ref().is_ok_and(lags);
        let outcome = match &fetched {
            Err(error) => Err(error.failure),
            Ok(_) if is_behind => Err(FetchFailure::OlderThanLive),
            Ok(fetched) => Ok(self.state.lock().head() != Some(fetched.head)),
        };
        self.metrics.count_fetch(
            trigger.as_str(),
            outcome.map_err(FetchFailure::reason),
            began_at.elapsed(),
        );
        let accepted = match fetched {
            Ok(fetched) if is_behind => {
                self.state.request_fetch(trigger);
                let message = format!("it shows {}, which is behind the live commit", fetched.head);
                return Err(FetchError { failure: FetchFailure::OlderThanLive, message });
            }
            Ok(fetched) => match self.accept(&fetched, trigger, began) {
                // Where a write was published since the fetch began, what it found is older than the
                // live commit. Where the daemon stops, the next start decides.
                Err(NotAccepted::Outdated | NotAccepted::Unknown) => {
                    self.state.request_fetch(trigger);
                    Ok(())
                }
                Err(NotAccepted::Unread(error)) => Err(unread(&error)),
                Ok(_) => Ok(()),
            },
            Err(error) => Err(error),
        };
        match accepted {
            Ok(()) => {
                if let Some(pull_requests) = &self.pull_requests {
                    pull_requests.request();
                }
                self.other_refs.request();
                Ok(())
            }
            Err(error) => {
                self.state.lock().fetch_failed(&error);
                self.verify_again();
                self.state.notify();
                Err(error)
            }
        }
    }

    /// Fetches everything again where objects on disk are damaged.
    fn fetch_damaged_again(&self) {
        if self.source.kind() == SourceKind::Local {
            return self.state.lock().forget_damage();
        }
        if refetch_if_due(&self.source, &self.state, &self.recorder) {
            self.ancestry.lock().clear();
            self.state.notify();
        }
    }

    /// Takes in where the branch is.
    fn accept(
        &self,
        fetched: &Fetched,
        trigger: Trigger,
        began: FetchBegan,
    ) -> Result<bool, NotAccepted> {
        let (repository, head) = (&fetched.repository, fetched.head);
        let moved = {
            let state = self.state.lock();
            state.check_current(began)?;
            state.head() != Some(head)
        };
        if moved && !self.is_noted(head) {
            self.recorder.note(Event::Fetched { commit: head });
        }
        let accepted = self.decide(repository, |ancestry| {
            if !self.knows_enough(repository, ancestry, head, trigger, began) {
                return Err(NotAccepted::Unknown);
            }
            let live = self.state.lock().live();
            // A removed key counts for the live commit, too.
            let signed = live.and_then(|live| self.signed(repository, live));
            self.settle_pin(repository);
            self.verify_waiting(repository);
            self.verify_unrecovered(repository);
            let fetched = FetchedHead { began, head, ancestry, signed };
            let following = self.following(repository, ancestry, head, trigger, began);
            let (mut state, now) = (self.state.lock(), Now::read());
            // In one step: a writer that sees the new head must see what becomes of it.
            state.accept(fetched, &following, now)
        });
        // Also where no candidate is left: a writer may wait for the decision about the one before.
        self.state.notify();
        accepted
    }

    /// Returns whether the history that decides about a head is known, whatever its signatures are. Verifying them takes long
    /// and changes what the status says, so it comes after the history was read.
    fn knows_enough(
        &self,
        repository: &Repository,
        ancestry: &KnownAncestry,
        head: CommitId,
        trigger: Trigger,
        began: FetchBegan,
    ) -> bool {
        let fetched = FetchedHead { began, head, ancestry, signed: None };
        let following = self.unverified(repository, ancestry, head, trigger, began);
        let mut tried = self.state.lock().clone();
        tried.accept(fetched, &following, Now::read()).ok();
        ancestry.is_known()
    }

    /// Decides by the history of a repository, until the daemon stops. What else decides is found out again after each
    /// walk: an operator may have pinned or resumed meanwhile.
    fn decide<D>(&self, repository: &Repository, decide: impl FnMut(&KnownAncestry) -> D) -> D {
        let read = |pair| read_ancestry(repository, pair);
        let is_wanted = || !self.state.is_stopping();
        decide_by_history(&mut self.ancestry.lock(), read, is_wanted, decide)
    }

    /// Returns whether the journal says that the branch is at a commit: it may do so before the commit is accepted.
    fn is_noted(&self, head: CommitId) -> bool {
        let journal = self.recorder.journal();
        journal.live() == Some(head) || journal.head() == Some(head)
    }

    /// Decides about a pin that the journal lost, once it is known whether the repository has its commit.
    fn settle_pin(&self, repository: &Repository) {
        let is_damaged = {
            let state = self.state.lock();
            if !state.is_pin_unsettled() {
                return;
            }
            state.is_damaged()
        };
        // The commit may be on another branch, or among what is fetched again.
        let expects_others = self.source.mirror().is_some_and(Mirror::expects_others);
        let is_complete = !is_damaged && !expects_others;
        let recovered = self.recorder.recovered_pin(|commit| match repository.presence(commit) {
            CommitPresence::Absent if !is_complete => CommitPresence::Unknown,
            found => found,
        });
        if let RecoveredPin::Settled(pin) = recovered {
            self.state.lock().settle_pin(pin);
        }
    }

    /// Follows the head that an earlier run fetched.
    pub(super) fn follow_recovered(&self, repository: &Repository, observed: ObservedCommit) {
        let began = self.state.lock().published();
        let head = observed.commit;
        let accepted = self.decide(repository, |ancestry| {
            let following = self.following(repository, ancestry, head, Trigger::Startup, began);
            self.state.lock().accept_recovered(observed, &following, Now::read())
        });
        match accepted {
            Ok(true) => self.state.notify(),
            Ok(false) | Err(NotAccepted::Outdated | NotAccepted::Unknown) => {}
            Err(NotAccepted::Unread(error)) => {
                tracing::warn!(%error, "the next fetch decides whether the head that was fetched before answers");
            }
        }
    }

    /// Returns what decides whether the builder gets a head of the branch, and whether it may be live
    /// then.
    fn following<'r>(
        &self,
        repository: &Repository,
        ancestry: &'r KnownAncestry,
        head: CommitId,
        trigger: Trigger,
        began: FetchBegan,
    ) -> Following<'r> {
        let unverified = self.unverified(repository, ancestry, head, trigger, began);
        let candidate = unverified.pinned_late.unwrap_or(head);
        Following { has_new_verdict: self.new_verdict(repository, candidate), ..unverified }
    }

    /// The same, as if the keys decided otherwise than they did.
    fn unverified<'r>(
        &self,
        repository: &Repository,
        ancestry: &'r KnownAncestry,
        head: CommitId,
        trigger: Trigger,
        began: FetchBegan,
    ) -> Following<'r> {
        let (live_last, followed_last, accepted, resumed_at) = {
            let journal = self.recorder.journal();
            (journal.live(), journal.followed(), journal.accepted(), journal.resumed_at())
        };
        let pinned_late = self.pinned_late(repository);
        Following {
            began,
            head,
            trigger,
            ancestry,
            live_last,
            followed_last,
            accepted,
            resumed_at,
            pinned_late,
            has_new_verdict: true,
        }
    }

    /// Returns the pinned commit if it has arrived and is not live yet: the mirror was lost.
    fn pinned_late(&self, repository: &Repository) -> Option<CommitId> {
        let (pinned, live) = {
            let state = self.state.lock();
            (state.pinned()?, state.live())
        };
        (live != Some(pinned) && repository.commit(pinned).is_ok()).then_some(pinned)
    }

    /// Returns who signed a commit, or what is wrong with its signature; none if the commit cannot be read, which says
    /// nothing of that.
    fn signed(&self, repository: &Repository, commit: CommitId) -> Option<SignatureVerdict> {
        let signed = self.verifier.signer_of(repository, commit);
        Some(signed).filter(|it| it.as_ref().err().and_then(SignatureFault::read_error).is_none())
    }

    /// Returns whether the keys decide otherwise about a candidate than they did, or may do so about what a resume
    /// activates behind it: a key was added or removed, or the file of keys can be read again.
    fn new_verdict(&self, repository: &Repository, head: CommitId) -> bool {
        let (rejected, is_held, lacks_fallback) = {
            let state = self.state.lock();
            let rejected = state.signature_fault(head).cloned();
            (rejected, state.held() == Some(head), state.lacks_fallback(head))
        };
        if lacks_fallback && self.verifier.is_fallback_due() {
            return true;
        }
        if rejected.is_none() && !is_held {
            return false;
        }
        match self.verifier.verify(repository, head, Trust::Begin) {
            Ok(_) => rejected.is_some(),
            // One that is rejected for something else says so.
            Err(fault) => fault.read_error().is_none() && rejected != Some(fault),
        }
    }

    /// Applies changes of the keys to the commit that waits behind a candidate that is not valid.
    fn verify_waiting(&self, repository: &Repository) {
        let Some(commit) = self.state.lock().waiting_if_signed() else { return };
        let verified = self.verifier.verify(repository, commit, Trust::Begin);
        // Damage says nothing of signatures.
        if verified.as_ref().err().and_then(SignatureFault::read_error).is_none() {
            self.state.lock().waiting_verified(commit, verified.is_ok());
        }
    }

    /// Applies changes of the keys to the commit that was live before the restart, where none is live: the builder makes
    /// it live as soon as they allow it.
    fn verify_unrecovered(&self, repository: &Repository) {
        let Some(commit) = self.state.lock().unrecovered_by_keys() else { return };
        let verdict = self.verifier.verify(repository, commit, Trust::Begin).map(|_| ());
        // Damage says nothing of signatures.
        if verdict.as_ref().err().and_then(SignatureFault::read_error).is_none() {
            self.state.lock().unrecovered_verified(commit, verdict);
        }
    }

    /// Applies changes of the keys where the remote cannot be fetched: to the live commit or the one that was live before
    /// the restart, and to a candidate.
    fn verify_again(&self) {
        let (live, candidate, unrecovered) = {
            let state = self.state.lock();
            (state.live(), state.candidate(), state.unrecovered_by_keys())
        };
        let is_idle = live.or(candidate).or(unrecovered).is_none();
        if self.verifier.mode() == VerifyMode::Off || is_idle {
            return;
        }
        let Ok(repository) = self.source.repository() else { return };
        self.verify_waiting(&repository);
        self.verify_unrecovered(&repository);
        let signed = live.and_then(|it| Some((it, self.signed(&repository, it)?)));
        let changed = candidate.filter(|it| self.new_verdict(&repository, *it));
        self.state.lock().verified_again(signed, changed);
    }

    /// Returns how long to wait until the next fetch.
    fn pause(&self) -> Duration {
        let (wait, gone) =
            self.state.lock().next_fetch(self.interval, fastrand::f64(), Now::read());
        if let Some(commit) = gone {
            tracing::warn!(%commit, "a webhook announced a commit that the remote never showed");
        }
        wait
    }
}

/// Returns what the status says where the history that decides cannot be read: it is fetched again soon.
fn unread(error: &ReadError) -> FetchError {
    FetchError { failure: FetchFailure::Other, message: error.to_string() }
}
