//! Looking at the branch: observe, fetch, and what follows from where it is.
#![expect(clippy::disallowed_methods, reason = "ages are measured by the clock")]

use std::time::{Duration, Instant};

use super::admission::Trust;
use super::clock::Now;
use super::controller::Controller;
use super::journal::Event;
use super::settings::Target;
use super::state::{Ancestry, FetchBegan, FetchedHead, Following, Outdated};
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
        let fetch = self.state().fetch_began(Now::read());
        let seen = self.observe();
        self.state().fetch_ended();
        let outcome = match &seen {
            Err(error) => Err(error.failure),
            Ok(seen) => Ok(self.state().head() != Some(seen.head)),
        };
        self.metrics.count_fetch(
            trigger.as_str(),
            outcome.map_err(FetchFailure::reason),
            began.elapsed(),
        );
        match seen {
            Ok(seen) => {
                self.accept(&seen, trigger, fetch);
                self.request_head_checks();
                self.want_others();
                Ok(())
            }
            Err(error) => {
                self.state().fetch_failed(&error);
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

    /// Takes in where the branch is, unless a write was published since the fetch began: what it saw is
    /// then older than what answers, and the branch is fetched again.
    fn accept(&self, seen: &Seen, trigger: Trigger, began: FetchBegan) {
        if self.take_in(seen, trigger, began).is_err() {
            self.want(trigger);
        }
    }

    fn take_in(&self, seen: &Seen, trigger: Trigger, began: FetchBegan) -> Result<(), Outdated> {
        let Seen { repository, head } = seen;
        let (head, live, moved) = {
            let state = self.state();
            state.check_current(began)?;
            (*head, state.live(), state.head() != Some(*head))
        };
        if moved && self.journal().live() != Some(head) {
            self.note(Event::Fetched { commit: head });
        }
        // A key that was taken away counts for what answers, too.
        let signed = live.map(|live| self.signer_of(repository, live));
        let fetched = FetchedHead { began, head, ancestry: repository, signed };
        let following = self.following(repository, head, trigger, began);
        let has_candidate = {
            let (mut state, now) = (self.state(), Now::read());
            // In one step: a writer that sees the new head must see what becomes of it.
            state.fetched(fetched, now)?;
            state.follow(&following, now)?
        };
        if has_candidate {
            self.notify();
        }
        Ok(())
    }

    /// Follows the head that an earlier run fetched.
    pub(super) fn follow_recovered(&self, repository: &Repository, observed: Observed) {
        let began = self.state().published();
        let following = self.following(repository, observed.commit, Trigger::Startup, began);
        let has_candidate = {
            let mut state = self.state();
            state.recovered_head(observed);
            state.follow(&following, Now::read())
        };
        if has_candidate == Ok(true) {
            self.notify();
        }
    }

    /// Returns what decides whether the builder gets a head of the branch, and whether it may answer then.
    fn following<'r>(
        &self,
        repository: &'r Repository,
        head: CommitId,
        trigger: Trigger,
        began: FetchBegan,
    ) -> Following<'r> {
        let (answered_last, followed_last, accepted) = {
            let journal = self.journal();
            (journal.live(), journal.followed(), journal.accepted())
        };
        let pinned_late = self.pinned_late(repository);
        let is_signed_now = self.verifies_now(repository, pinned_late.unwrap_or(head));
        Following {
            began,
            head,
            trigger,
            ancestry: repository,
            answered_last,
            followed_last,
            accepted,
            pinned_late,
            is_signed_now,
        }
    }

    /// Returns the pinned commit if it has arrived and does not answer yet: the mirror was lost.
    fn pinned_late(&self, repository: &Repository) -> Option<CommitId> {
        let (pinned, live) = {
            let state = self.state();
            (state.pinned()?, state.live())
        };
        (live != Some(pinned) && repository.commit(pinned).is_ok()).then_some(pinned)
    }

    /// Returns whether a candidate that was rejected for a signature has a good one now: a key was
    /// added, or the file of keys can be read again.
    fn verifies_now(&self, repository: &Repository, head: CommitId) -> bool {
        let was_refused = self.state().was_refused_unsigned(head);
        was_refused && self.admit(repository, head, Trust::Begin).is_ok()
    }

    /// Returns how long to wait until the next fetch.
    pub(super) fn next_look(&self) -> Duration {
        let (wait, gone) =
            self.state().next_fetch(self.settings.interval, fastrand::f64(), Now::read());
        if let Some(commit) = gone {
            tracing::warn!(%commit, "a webhook announced a commit that the remote never showed");
        }
        wait
    }
}

impl Ancestry for Repository {
    fn is_ancestor(&self, ancestor: CommitId, descendant: CommitId) -> bool {
        Self::is_ancestor(self, ancestor, descendant).unwrap_or(false)
    }
}
