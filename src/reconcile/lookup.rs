//! Answering about commits: any revision, any time, and what became of one.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::admission::Trust;
use super::build::Outcome;
use super::clock::Now;
use super::commit_state::{CommitState, Surroundings};
use super::controller::{Controller, LookupError};
use super::settings::Target;
use super::status::Truth;
use super::trigger::Trigger;
use super::turns::Urgency;
use crate::git::{CommitInfo, Repository};
use crate::model::CommitId;
use crate::snapshot::Snapshot;
use crate::telemetry::Scrape;

/// What is known of a commit.
#[derive(Clone, Debug)]
pub struct Known {
    /// The commit itself.
    pub info: CommitInfo,
    /// What came of building it.
    pub outcome: Outcome,
    /// What became of it here.
    pub fate: CommitState,
}

impl Controller {
    /// Returns the snapshot of a revision, building it if need be. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit, or it is not valid.
    pub fn snapshot_at(&self, revision: &str) -> Result<Arc<Snapshot>, LookupError> {
        let live = self.live_snapshots.stable();
        if let Some(live) = live.filter(|it| it.snapshot().commit.to_string() == revision) {
            return Ok(Arc::clone(live.snapshot()));
        }
        let repository = self.repository().map_err(|it| LookupError::Unreadable(it.to_string()))?;
        let commit = repository.resolve(revision)?;
        self.admit(&repository, commit, Trust::Nothing)?;
        self.built(&repository, commit)
    }

    /// Returns the snapshot of a revision to compare with another, signed or not: heads of pull
    /// requests are not signed yet. It must not answer agents. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit, or it is not valid.
    pub fn snapshot_to_compare(&self, revision: &str) -> Result<Arc<Snapshot>, LookupError> {
        let repository = self.repository().map_err(|it| LookupError::Unreadable(it.to_string()))?;
        let commit = repository.resolve(revision)?;
        self.built(&repository, commit)
    }

    fn built(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<Arc<Snapshot>, LookupError> {
        match self.outcome_to_read(repository, commit, Urgency::Reads)? {
            Outcome::Valid(snapshot) => Ok(snapshot),
            Outcome::Rejected(rejected) => Err(LookupError::Rejected(rejected)),
        }
    }

    /// Returns the snapshot of a commit that answered on another replica, and has the branch looked at
    /// if the commit has not arrived. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not here yet, or not valid.
    pub fn snapshot_from_elsewhere(&self, commit: CommitId) -> Result<Arc<Snapshot>, LookupError> {
        match self.snapshot_at(&commit.to_string()) {
            Err(LookupError::Unknown(_)) => {
                self.look_again();
                Err(LookupError::NotHereYet(commit))
            }
            done => done,
        }
    }

    /// Has the branch looked at, unless that was done just now or is being tried again anyway: who asks
    /// for commits that do not exist must not drive the remote.
    fn look_again(&self) {
        let (seen, failures) = {
            let state = self.state();
            (state.last_contact, state.failures)
        };
        let due = seen.is_none_or(|it| it.elapsed() >= Duration::from_secs(1));
        if due && failures == 0 {
            self.want(Trigger::Manual);
        }
    }

    /// Returns whether commits come from elsewhere, rather than from a repository of this machine.
    pub fn follows_a_remote(&self) -> bool {
        matches!(self.settings.target, Target::Remote(_))
    }

    /// Returns the snapshot that answered here at a time. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if none did, or the time has not come.
    pub fn snapshot_then(&self, time: Timestamp) -> Result<Arc<Snapshot>, LookupError> {
        let then = self.journal().live_at(time, Now::read());
        let commit = then.ok_or(LookupError::NothingThen(time))?;
        self.snapshot_at(&commit.to_string())
    }

    /// Returns what is known of a revision, building it if need be. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit or it cannot be read.
    pub fn known(&self, revision: &str) -> Result<Known, LookupError> {
        let repository = self.repository().map_err(|it| LookupError::Unreadable(it.to_string()))?;
        let commit = repository.resolve(revision)?;
        let info = repository.commit(commit)?;
        let outcome = self.outcome_to_read(&repository, commit, Urgency::Reads)?;
        let fate = self.commit_state(&repository, commit);
        Ok(Known { info, outcome, fate })
    }

    /// Returns the commits that are kept built, newest first. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository cannot be opened.
    pub fn commits(&self) -> Result<Vec<Known>, LookupError> {
        let repository = self.repository().map_err(|it| LookupError::Unreadable(it.to_string()))?;
        let all = self.retained.lock().unwrap_or_else(PoisonError::into_inner).all();
        let mut commits: Vec<Known> = all
            .into_iter()
            .filter_map(|(commit, outcome)| {
                let info = repository.commit(commit).ok()?;
                Some(Known { info, outcome, fate: self.commit_state(&repository, commit) })
            })
            .collect();
        commits.sort_by_key(|known| std::cmp::Reverse((known.info.time, known.info.id)));
        Ok(commits)
    }

    /// Returns the text of a file in a commit, by its path from the root of the groups; none if there is
    /// none. Blocking.
    pub fn text(&self, commit: CommitId, path: &str) -> Option<String> {
        self.repository().ok()?.text(commit, &self.path_of(path))
    }

    /// Returns the path of a file of the groups in the tree.
    pub(super) fn path_of(&self, path: &str) -> String {
        match self.path().trim_matches('/') {
            "" | "." => path.to_owned(),
            directory => format!("{directory}/{path}"),
        }
    }

    /// Returns the full name of the ref that is followed, if there is one.
    pub fn watched_ref(&self) -> Option<String> {
        match self.settings.branch.as_deref() {
            Some(name) if name.starts_with("refs/") => Some(name.to_owned()),
            Some(name) => Some(format!("refs/heads/{name}")),
            None => self.repository().ok()?.head_ref(),
        }
    }

    /// Returns how things stand, for metrics.
    pub fn scrape(&self) -> Scrape {
        let status = self.status();
        let second = |time: Option<Timestamp>| time.map(Timestamp::as_second);
        Scrape {
            revision: status.active.as_ref().map(|it| it.commit.to_string()),
            groups: status.active.as_ref().map_or(0, |it| it.groups),
            retained: self.retained.lock().unwrap_or_else(PoisonError::into_inner).all().len(),
            conditions: status
                .conditions
                .iter()
                .map(|it| (format!("{:?}", it.kind), it.status == Truth::True))
                .collect(),
            last_attempt: second(status.remote.last_attempt),
            last_contact: second(status.remote.last_contact),
            last_change: second(status.remote.last_change),
            last_activation: second(status.active.as_ref().map(|it| it.activated_at)),
            staleness: status.remote.staleness_seconds,
            failures: status.remote.consecutive_failures,
        }
    }

    fn commit_state(&self, repository: &Repository, commit: CommitId) -> CommitState {
        let (head, held) = {
            let state = self.state();
            (state.head(), state.held())
        };
        let is_ancestor = |old, new| repository.is_ancestor(old, new).unwrap_or(false);
        let around = Surroundings { head, held, is_ancestor: &is_ancestor };
        CommitState::of(commit, &self.journal(), around)
    }
}
