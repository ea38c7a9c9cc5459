//! Looking at the branch: observe, fetch, and what follows from where it is.
#![expect(clippy::disallowed_methods, reason = "ages are measured by the clock")]

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::admission::Trust;
use super::controller::Controller;
use super::journal::{Event, Stage};
use super::schedule;
use super::settings::{OnRewrite, Policy, Target};
use super::standing::{Behind, Candidate, Progress, Rewrite, Standing};
use super::status::Observed;
use super::trigger::Trigger;
use crate::git::{FetchError, FetchFailure, Repository};
use crate::model::CommitId;

/// Where the branch is.
struct Seen {
    repository: Repository,
    head: CommitId,
}

impl Controller {
    /// Looks at the branch and hands its commit to the builder, if it is a new one.
    pub(super) fn look(&self, trigger: Trigger) -> Result<(), FetchError> {
        let _talking = self.talking();
        self.look_now(trigger)
    }

    /// The same for who talks with the remote already.
    pub(super) fn look_now(&self, trigger: Trigger) -> Result<(), FetchError> {
        let began = Instant::now();
        let written = {
            let mut state = self.state();
            state.standing.last_attempt = Some(Timestamp::now());
            state.standing.fetching = Some(began);
            state.standing.written
        };
        let seen = self.observe();
        self.state().standing.fetching = None;
        let outcome = match &seen {
            Err(error) => Err(error.failure),
            Ok(seen) => Ok(self.state().standing.observed.is_none_or(|it| it.commit != seen.head)),
        };
        self.metrics.count_fetch(
            trigger.as_str(),
            outcome.map_err(FetchFailure::reason),
            began.elapsed(),
        );
        match seen {
            Ok(seen) => {
                self.accept(&seen, trigger, written);
                self.request_head_checks();
                self.want_others();
                Ok(())
            }
            Err(error) => {
                let mut state = self.state();
                state.standing.failures = state.standing.failures.saturating_add(1);
                state.standing.failure = Some((error.failure, error.message.clone()));
                drop(state);
                self.notify();
                Err(error)
            }
        }
    }

    /// Returns the repository and the commit of the branch.
    fn observe(&self) -> Result<Seen, FetchError> {
        let branch = self.settings.branch.as_deref();
        match &self.settings.target {
            Target::Local(path) => {
                let fail = |failure, message: String| FetchError { failure, message };
                let repository = Repository::discover(path)
                    .map_err(|error| fail(FetchFailure::RepositoryNotFound, error.to_string()))?;
                let head = repository.branch_head(branch).map_err(|_| {
                    fail(
                        FetchFailure::RefNotFound,
                        match branch {
                            Some(branch) => format!("the repository has no branch `{branch}`"),
                            None => "the repository has no commit yet".to_owned(),
                        },
                    )
                })?;
                Ok(Seen { repository, head })
            }
            Target::Remote(mirror) => {
                let fetched = mirror.fetch_watched(branch)?;
                let repository = mirror.repository().map_err(|error| FetchError {
                    failure: FetchFailure::CorruptObjects,
                    message: error.to_string(),
                })?;
                Ok(Seen { repository, head: fetched.head })
            }
        }
    }

    /// Notes that the branch is at a commit that we put there.
    pub(super) fn note_written(&self, commit: CommitId) {
        let mut state = self.state();
        state.standing.written += 1;
        state.standing.note_contact(commit, true);
        state.standing.candidate = None;
        state.standing.expected.retain(|it| it.commit != commit);
    }

    /// Takes in where the branch is, unless a write was published since it was asked for: what was
    /// seen is then older than what answers, and the branch is fetched again.
    fn accept(&self, seen: &Seen, trigger: Trigger, written: u64) {
        let Seen { repository, head } = seen;
        let head = *head;
        if self.state().standing.written != written {
            return self.want(trigger);
        }
        let is_ancestor = |old, new| repository.is_ancestor(old, new).unwrap_or(false);
        let before = self.state().standing.observed;
        let moved = before.is_none_or(|it| it.commit != head);
        if moved && self.journal().activations().next_back().is_none_or(|(_, it)| it != head) {
            self.note(Event::Fetched { commit: head });
        }
        // A key that was taken away counts for what answers, too.
        let live = self.active.load().as_ref().map(|it| it.commit);
        let verified = live.map(|live| self.signer_of(repository, live));
        let mut state = self.state();
        let standing = &mut state.standing;
        if standing.written != written {
            drop(state);
            return self.want(trigger);
        }
        standing.note_contact(head, moved);
        if let Some(verified) = verified {
            standing.verified = verified.transpose();
        }
        standing.expected.retain(|it| !is_ancestor(it.commit, head));
        if standing.invisible.is_some_and(|it| is_ancestor(it, head)) {
            standing.invisible = None;
        }
        if let Some(before) = before.filter(|_| moved) {
            let lost = !is_ancestor(before.commit, head) && !is_ancestor(head, before.commit);
            let answers = |it: &Rewrite| live.is_some_and(|live| is_ancestor(it.to, live));
            let accepted = standing.rewritten.filter(|it| it.accepted && !answers(it));
            standing.rewritten = match accepted.filter(|it| is_ancestor(it.to, head)) {
                // What an operator accepted did not answer yet when the branch went on.
                Some(rewrite) => Some(Rewrite { to: head, ..rewrite }),
                None => lost.then_some(Rewrite { from: before.commit, to: head, accepted: false }),
            };
        }
        drop(state);
        self.consider(repository, head, trigger, written);
    }

    /// Decides whether the builder gets the head of the branch, and whether it may answer then.
    pub(super) fn consider(
        &self,
        repository: &Repository,
        head: CommitId,
        trigger: Trigger,
        written: u64,
    ) {
        let is_ancestor = |old, new| repository.is_ancestor(old, new).unwrap_or(false);
        let live = self.active.load().as_ref().map(|it| it.commit);
        let pinned = self.state().standing.pinned;
        // Where the mirror was lost, the journal still knows what answered. A pinned commit says nothing
        // of the branch, which is compared with what answered before the pin.
        let last = match pinned {
            Some(_) => self.journal().followed(),
            None => live.or_else(|| self.journal().live()),
        };
        let accepted = self.journal().accepted();
        let late = self.pinned_late(repository, live);
        let followed = late.unwrap_or(head);
        let mends = self.verifies_now(repository, followed);
        let mut state = self.state();
        let standing = &mut state.standing;
        if standing.written != written {
            drop(state);
            return self.want(trigger);
        }
        if live == Some(head) {
            standing.accept_rewrite(head);
            standing.settle();
            return;
        }
        let head = followed;
        let known = standing.candidate.as_ref().filter(|it| it.commit == head);
        let waits = known.map(|it| matches!(it.progress, Progress::Held));
        if waits == Some(false) && !mends {
            // It is on its way, or was rejected: what is wrong with it does not change.
            return;
        }
        let from = last.filter(|last| *last != head);
        let rewound = from.is_some_and(|last| is_ancestor(head, last));
        let off = from.is_some_and(|last| !rewound && !is_ancestor(last, head));
        // Nothing is gained by waiting for a replica where nothing answers.
        let lags = rewound && live.is_some() && pinned.is_none();
        let lost = from.filter(|_| off || (rewound && pinned.is_none()));
        if lost.is_none() {
            standing.accept_rewrite(head);
        }
        let lags = standing.holds_rewind(head, lags, &self.settings);
        // Each is noted, whatever else holds the head.
        let rewritten = standing.holds_rewrite(head, lost, accepted, &self.settings.policy);
        let held = standing.pinned.is_some() || lags || rewritten;
        if held && waits == Some(true) {
            return;
        }
        let since = standing.first_evidence(head).unwrap_or_else(Instant::now);
        // A held commit is built all the same: whether it is valid is worth knowing.
        standing.candidate = Some(Candidate::new(head, trigger, since));
        drop(state);
        self.notify();
    }

    /// Returns the pinned commit if it has arrived and does not answer yet: the mirror was lost.
    fn pinned_late(&self, repository: &Repository, live: Option<CommitId>) -> Option<CommitId> {
        let pinned = self.state().standing.pinned?;
        (live != Some(pinned) && repository.commit(pinned).is_ok()).then_some(pinned)
    }

    /// Returns whether a candidate that was rejected for a signature has a good one now: a key was
    /// added, or the file of keys can be read again.
    fn verifies_now(&self, repository: &Repository, head: CommitId) -> bool {
        let was_refused = {
            let state = self.state();
            state.standing.candidate.as_ref().is_some_and(|it| {
                let Progress::Failed(failed, _) = &it.progress else { return false };
                it.commit == head && failed.stage == Stage::Verify
            })
        };
        was_refused && self.admit(repository, head, Trust::Begin).is_ok()
    }

    /// Returns how long to wait until the next look, and counts looks for expected commits.
    pub(super) fn next_look(&self) -> Duration {
        let interval = self.settings.interval;
        let chance = fastrand::f64();
        let mut state = self.state();
        let standing = &mut state.standing;
        let mut wait = match &standing.failure {
            None => schedule::after_success(interval, chance),
            Some((failure, _)) => {
                schedule::after_failure(interval, *failure, standing.failures, chance)
            }
        };
        if let Some(behind) = standing.behind {
            let left = self.settings.policy.rewind_grace.saturating_sub(behind.since.elapsed());
            wait = wait.min(left.max(Duration::from_millis(10)));
        }
        let expected_count = standing.expected.len();
        for expected in &mut standing.expected {
            let age = expected.since.elapsed();
            while schedule::look_for_expected(expected.tries).is_some_and(|at| at <= age) {
                expected.tries += 1;
            }
            if let Some(at) = schedule::look_for_expected(expected.tries) {
                wait = wait.min(schedule::until_expected(at.saturating_sub(age), expected_count));
            }
        }
        let (expected, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut standing.expected)
            .into_iter()
            .partition(|it| schedule::look_for_expected(it.tries).is_some());
        standing.expected = expected;
        if let Some(gone) = gone.last() {
            standing.invisible = Some(gone.commit);
            tracing::warn!(commit = %gone.commit, "a webhook told of a commit that never came");
        }
        wait
    }
}

impl Standing {
    fn note_contact(&mut self, head: CommitId, moved: bool) {
        let now = Timestamp::now();
        if moved {
            self.last_change = Some(now);
        }
        self.observed = Some(Observed { commit: head, fetched_at: now });
        self.seen = Some(Instant::now());
        self.failure = None;
        self.failures = 0;
    }

    /// The head of the branch answers.
    fn settle(&mut self) {
        self.candidate = None;
        self.behind = None;
        if self.rewritten.is_some_and(|it| Some(it.to) != self.observed.map(|it| it.commit)) {
            self.rewritten = None;
        }
    }

    /// A rewritten branch that contains the commit that answers takes nothing away: what it lost
    /// never answered, and no operator is needed.
    fn accept_rewrite(&mut self, head: CommitId) {
        if let Some(rewrite) = self.rewritten.as_mut().filter(|it| it.to == head) {
            rewrite.accepted = true;
        }
    }

    /// Returns when a commit was first heard of.
    fn first_evidence(&self, commit: CommitId) -> Option<Instant> {
        self.expected.iter().find(|it| it.commit == commit).map(|it| it.since)
    }

    /// Returns whether a head that is older than what answers is taken for a replica's lag.
    fn holds_rewind(&mut self, head: CommitId, rewound: bool, settings: &super::Settings) -> bool {
        // A repository of this machine has no replicas.
        if !rewound || matches!(settings.target, Target::Local(_)) {
            self.behind = None;
            return false;
        }
        let behind = match self.behind {
            Some(behind) if behind.head == head => behind,
            _ => Behind { head, since: Instant::now() },
        };
        let lags = behind.since.elapsed() < settings.policy.rewind_grace;
        self.behind = lags.then_some(behind);
        lags
    }

    /// Returns whether a head that lacks what answers waits for an operator.
    fn holds_rewrite(
        &mut self,
        head: CommitId,
        live: Option<CommitId>,
        accepted: Option<CommitId>,
        policy: &Policy,
    ) -> bool {
        let Some(live) = live else { return false };
        let rewrite = match self.rewritten {
            Some(rewrite) if rewrite.to == head => rewrite,
            _ => Rewrite { from: live, to: head, accepted: accepted == Some(head) },
        };
        if self.behind.is_none() {
            self.rewritten = Some(rewrite);
        }
        policy.on_rewrite == OnRewrite::Hold && !rewrite.accepted
    }
}
