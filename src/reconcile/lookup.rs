//! Answering about commits: any revision, any time, and the state of one.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::iter::Peekable;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::build_queue::Priority;
use super::clock::Now;
use super::commit_state::{CommitRecords, CommitState, Surroundings};
use super::errors::LookupError;
use super::head_history::HeadHistory;
use super::live::LiveSnapshots;
use super::outcome::Outcome;
use super::recorder::Recorder;
use super::shared_state::SharedState;
use super::snapshot_store::SnapshotStore;
use super::source::Source;
use super::trigger::Trigger;
use super::verifier::{Trust, Verifier};
use crate::git::{CommitInfo, ContainedCommits, Repository, ResolveError, RevisionError};
use crate::model::CommitId;
use crate::snapshot::Snapshot;

/// How many commits of the followed branch are put in its order; those before go by the clocks of their committers.
const LINE: usize = 1000;

/// A commit, the outcome of its build, and its state here.
#[derive(Clone, Debug)]
pub struct CommitDetails {
    /// The commit itself.
    pub info: CommitInfo,
    /// The outcome of its build.
    pub outcome: Outcome,
    /// Its state here.
    pub state: CommitState,
}

/// Where a commit stands to the history that is followed.
#[derive(Clone, Debug)]
pub enum FollowedSnapshot {
    /// The history has it, or it was live here.
    Found(Arc<Snapshot>),
    /// It has the head of the branch in its own history: the branch may have it by now.
    Ahead,
    /// It is on no line with the branch.
    Beside,
}

/// Looks up snapshots and commits.
#[derive(Debug)]
pub(super) struct CommitLookup {
    pub(super) source: Arc<Source>,
    pub(super) state: Arc<SharedState>,
    pub(super) recorder: Arc<Recorder>,
    pub(super) verifier: Arc<Verifier>,
    pub(super) store: Arc<SnapshotStore>,
    pub(super) live: Arc<LiveSnapshots>,
    /// What the heads contain that the branch was at.
    pub(super) history: Mutex<HeadHistory>,
}

impl CommitLookup {
    /// Returns the snapshot of a revision, building it if need be. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit, or it is not valid or not signed as demanded.
    pub(super) fn snapshot_at(&self, revision: &str) -> Result<Arc<Snapshot>, LookupError> {
        if let Some(live) = self.live_if(|it| it.to_string() == revision) {
            return Ok(live);
        }
        let repository = self.source.repository()?;
        let commit = self.resolve(&repository, revision)?;
        let verified = self.verifier.verify(&repository, commit, Trust::Nothing)?;
        Ok(self.store.read(&repository, &verified)?.into_result()?)
    }

    /// Returns the live snapshot if its commit is the one that is asked for: it needs no repository.
    fn live_if(&self, is_asked: impl FnOnce(CommitId) -> bool) -> Option<Arc<Snapshot>> {
        let live = self.live.stable();
        Some(Arc::clone(live.filter(|it| is_asked(it.snapshot().commit))?.snapshot()))
    }

    /// Returns the snapshot of a revision to compare with another, signed or not: heads of pull
    /// requests are not signed yet. It must not answer agents. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit, or it is not valid.
    pub(super) fn snapshot_to_compare(&self, revision: &str) -> Result<Arc<Snapshot>, LookupError> {
        let repository = self.source.repository()?;
        let commit = self.resolve(&repository, revision)?;
        let outcome = self.store.read_unverified(&repository, commit, Priority::Reads)?;
        Ok(outcome.into_result()?)
    }

    /// Returns the snapshot of a commit that was live on another replica, and requests a fetch if the
    /// commit has not arrived. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not here yet, or not valid.
    pub(super) fn snapshot_from_elsewhere(
        &self,
        commit: CommitId,
    ) -> Result<Arc<Snapshot>, LookupError> {
        match self.snapshot_at(&commit.to_string()) {
            Err(LookupError::Unknown(error)) => {
                Err(self.missing(&self.source.repository()?, commit, error))
            }
            done => done,
        }
    }

    /// Returns the error of a commit that another replica may have fetched already, and requests a fetch. An object that
    /// has arrived and names no commit never does.
    fn missing(
        &self,
        repository: &Repository,
        commit: CommitId,
        error: RevisionError,
    ) -> LookupError {
        if repository.has_object(commit) {
            return LookupError::Unknown(error);
        }
        self.request_fetch_if_due();
        LookupError::NotHereYet(commit)
    }

    /// Returns the snapshot of a commit if the history that is followed has it, or it was live here. A fetch is
    /// requested if the branch may have it by now. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not here yet, or not valid.
    pub(super) fn followed_snapshot(
        &self,
        commit: CommitId,
    ) -> Result<FollowedSnapshot, LookupError> {
        if let Some(live) = self.live_if(|it| it == commit) {
            return Ok(FollowedSnapshot::Found(live));
        }
        let repository = self.source.repository()?;
        // The id of an annotated tag names the commit that it leads to.
        let commit = match self.resolve(&repository, &commit.to_string()) {
            Ok(named) => named,
            Err(LookupError::Unknown(error)) => {
                return Err(self.missing(&repository, commit, error));
            }
            Err(error) => return Err(error),
        };
        let was_live =
            || self.recorder.journal().activations().any(|(_, activated)| activated == commit);
        let head = self.state.lock().head();
        let heads = [self.live.commit(), head];
        let mut is_followed = heads.contains(&Some(commit)) || was_live();
        for head in heads.into_iter().flatten() {
            is_followed = is_followed || repository.is_ancestor(commit, head)?;
        }
        if is_followed {
            return self.snapshot_at(&commit.to_string()).map(FollowedSnapshot::Found);
        }
        // A pull request brought it, say, and it was merged since: another replica follows it by now.
        if let Some(head) = head
            && repository.is_ancestor(head, commit)?
        {
            self.request_fetch_if_due();
            return Ok(FollowedSnapshot::Ahead);
        }
        Ok(FollowedSnapshot::Beside)
    }

    /// Returns the commit of a revision. Where objects are damaged, a fetch is requested, which fetches everything
    /// again.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit, or it cannot be read.
    pub(super) fn resolve(
        &self,
        repository: &Repository,
        revision: &str,
    ) -> Result<CommitId, LookupError> {
        self.store.resolve(repository, revision).map_err(|error| {
            if matches!(error, ResolveError::Unreadable(_))
                && self.state.lock().is_refetch_due(Now::read().monotonic)
            {
                self.request_fetch_if_due();
            }
            error.into()
        })
    }

    /// Requests a fetch, unless one was made just now or is being tried again anyway: clients that ask
    /// for commits that do not exist must not drive the remote.
    fn request_fetch_if_due(&self) {
        let (fetched, failures) = {
            let state = self.state.lock();
            (state.last_contact, state.failures)
        };
        let due = fetched.is_none_or(|it| Now::read().age_of(it) >= Duration::from_secs(1));
        if due && failures == 0 {
            self.state.request_fetch(Trigger::Manual);
        }
    }

    /// Returns the snapshot that was live here at a time. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if none was, or the time has not come.
    pub(super) fn snapshot_then(&self, time: Timestamp) -> Result<Arc<Snapshot>, LookupError> {
        let then = self.recorder.journal().live_at(time, Now::read());
        let commit = then.ok_or(LookupError::NothingThen(time))?;
        self.snapshot_at(&commit.to_string())
    }

    /// Returns the details of a revision, building it if need be. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit or it cannot be read.
    pub(super) fn details(&self, revision: &str) -> Result<CommitDetails, LookupError> {
        let repository = self.source.repository()?;
        let commit = self.resolve(&repository, revision)?;
        let info = repository.commit(commit)?;
        let outcome = self.store.read_unverified(&repository, commit, Priority::Reads)?;
        let state = self.states(&repository).of(commit);
        Ok(CommitDetails { info, outcome, state })
    }

    /// Returns the commits that are kept built since the start, newest first, without those of writes that were refused.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository cannot be opened.
    pub(super) fn commits(&self) -> Result<Vec<CommitDetails>, LookupError> {
        let repository = self.source.repository()?;
        let kept = self.store.all();
        let states = self.states(&repository);
        let mut commits: Vec<CommitDetails> = kept
            .into_iter()
            .filter_map(|(commit, outcome)| {
                let info = repository.commit(commit).ok()?;
                let state = states.of(commit);
                // The write was refused after it was made, or made again on a newer commit.
                let is_abandoned =
                    state == CommitState::Elsewhere && self.store.is_unpushed(commit);
                (!is_abandoned).then_some(CommitDetails { info, outcome, state })
            })
            .collect();
        commits.sort_by_key(|it| std::cmp::Reverse((it.info.time, it.info.id)));
        let head = self.state.lock().head();
        let line = head
            .or_else(|| self.live.commit())
            .map(|it| line_of(&repository, it, commits.iter().map(|it| it.info.id).collect()))
            .unwrap_or_default();
        let place = |it: &CommitDetails| line.get(&it.info.id).copied();
        Ok(newest_first(commits, place, |it| it.info.time))
    }

    /// Returns what the states of commits follow from now.
    fn states<'r>(&'r self, repository: &'r Repository) -> CommitStates<'r> {
        let (head, held) = {
            let state = self.state.lock();
            (state.head(), state.waiting())
        };
        let answering = self.live.commit();
        let records = CommitRecords::of(&self.recorder.journal());
        CommitStates {
            repository,
            head,
            held,
            answering,
            records,
            history: &self.history,
            is_followed: Cell::new(false),
            asked: Cell::new(0),
            contained: RefCell::default(),
        }
    }
}

/// What the states of commits follow from. History is read only where a state depends on it, and then once for all
/// commits.
struct CommitStates<'r> {
    repository: &'r Repository,
    head: Option<CommitId>,
    held: Option<CommitId>,
    answering: Option<CommitId>,
    records: CommitRecords,
    history: &'r Mutex<HeadHistory>,
    /// Whether what the heads contain was read.
    is_followed: Cell<bool>,
    /// How often it was asked what the head and the live commit contain.
    asked: Cell<usize>,
    /// What they contain, where it is asked often.
    contained: RefCell<HashMap<CommitId, ContainedCommits>>,
}

/// How many questions are answered by a walk of their own, which ends where it finds the commit.
const OWN_WALKS: usize = 8;

impl CommitStates<'_> {
    fn of(&self, commit: CommitId) -> CommitState {
        let Self { head, held, answering, ref records, .. } = *self;
        let is_ancestor = |old, new| self.is_ancestor(old, new);
        let first_above = |commit| self.first_above(commit);
        let (is_ancestor, first_above) = (&is_ancestor, &first_above);
        let around = Surroundings { head, held, answering, is_ancestor, first_above };
        CommitState::of(commit, records, around)
    }

    fn is_ancestor(&self, old: CommitId, new: CommitId) -> bool {
        let asked = self.asked.replace(self.asked.get() + 1);
        if asked < OWN_WALKS {
            return self.repository.is_ancestor(old, new).unwrap_or(false);
        }
        let mut contained = self.contained.borrow_mut();
        let of_new = contained.entry(new);
        of_new.or_insert_with(|| self.repository.contained_commits(&[new])).contains(old)
    }

    fn first_above(&self, commit: CommitId) -> Option<usize> {
        let mut history = self.history.lock();
        if !self.is_followed.replace(true) {
            history.follow(self.repository, self.records.heads());
        }
        history.first_above(commit)
    }
}

/// Returns how far commits are behind a head, along first parents, as far as some of them are there.
fn line_of(
    repository: &Repository,
    head: CommitId,
    mut wanted: HashSet<CommitId>,
) -> HashMap<CommitId, usize> {
    let next = |commit: &CommitId| repository.first_parent(*commit).ok().flatten();
    let line = std::iter::successors(Some(head), next).take(LINE);
    let mut places = HashMap::new();
    for (at, commit) in line.enumerate() {
        if wanted.remove(&commit) {
            places.insert(commit, at);
        }
        if wanted.is_empty() {
            break;
        }
    }
    places
}

/// Puts commits that are ordered by time, the newest first, in the order of the branch where they are on it: a commit
/// comes before its parents, whatever the clocks of their committers said.
fn newest_first<C, T: Ord + Copy>(
    commits: Vec<C>,
    place: impl Fn(&C) -> Option<usize>,
    time: impl Fn(&C) -> T,
) -> Vec<C> {
    let (mut line, others): (Vec<C>, Vec<C>) =
        commits.into_iter().partition(|it| place(it).is_some());
    line.sort_by_key(&place);
    // A commit is as new as the newest that is behind it.
    let mut newest = None;
    let mut dated: Vec<(C, T)> = Vec::with_capacity(line.len());
    for commit in line.into_iter().rev() {
        let at = newest.map_or(time(&commit), |it: T| it.max(time(&commit)));
        newest = Some(at);
        dated.push((commit, at));
    }
    let mut line = dated.into_iter().rev().peekable();
    let mut others = others.into_iter().peekable();
    let is_next = |line: &mut Peekable<_>, other: &C| {
        line.peek().is_some_and(|(_, at): &(C, T)| *at >= time(other))
    };
    let mut ordered = Vec::new();
    loop {
        let from_line = match others.peek() {
            Some(other) => is_next(&mut line, other),
            None => true,
        };
        let next = if from_line { line.next().map(|(it, _)| it) } else { others.next() };
        match next {
            Some(commit) => ordered.push(commit),
            None => return ordered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn commits_come_in_the_order_of_the_branch() {
        // Each with its place on the branch, and its time; ordered by time.
        type Commits = &'static [(Option<usize>, u32)];
        let rows: [(Commits, Commits); 4] = [
            (&[], &[]),
            (&[(Some(0), 9), (None, 7), (Some(1), 5)], &[(Some(0), 9), (None, 7), (Some(1), 5)]),
            (
                &[(Some(1), 9), (None, 8), (Some(2), 7), (Some(0), 2)],
                &[(Some(0), 2), (Some(1), 9), (None, 8), (Some(2), 7)],
            ),
            (
                &[(None, 9), (Some(2), 5), (Some(0), 5), (Some(1), 5), (None, 5)],
                &[(None, 9), (Some(0), 5), (Some(1), 5), (Some(2), 5), (None, 5)],
            ),
        ];
        each_row(rows, |(commits, expected)| {
            assert_eq!(newest_first(commits.to_vec(), |it| it.0, |it| it.1), expected);
        });
    }
}
