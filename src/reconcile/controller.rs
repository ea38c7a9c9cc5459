//! Following a branch: the loop, what answers, and how things stand.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use indexmap::IndexMap;
use jiff::Timestamp;

use super::build::{BuildError, Cache, Outcome, Rejected, build};
use super::status::{Active, Condition, LastFailed, Observed, Status, Watched};
use crate::diagnostic;
use crate::git::{
    CommitInfo, FetchError, FetchFailure, Mirror, MirrorError, OpenError, ReadError, Repository,
    RevisionError,
};
use crate::model::CommitId;
use crate::snapshot::Snapshot;

/// Where the branch is.
#[derive(Debug)]
pub enum Target {
    /// In a repository of this machine that is read as it is.
    Local(PathBuf),
    /// At a remote that a mirror follows.
    Remote(Mirror),
}

/// What the controller follows.
#[derive(Debug)]
pub struct Settings {
    /// Where the branch is.
    pub target: Target,
    /// The address for the status, without credentials.
    pub address: String,
    /// The branch; none for what HEAD names.
    pub branch: Option<String>,
    /// The directory of the groups in the repository.
    pub path: String,
    /// How often the branch is looked at.
    pub interval: Duration,
}

/// The controller cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The mirror cannot be used.
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    /// The repository cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The remote cannot be fetched, and nothing is there from before.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The branch does not exist.
    #[error("the repository has no branch `{0}`")]
    NoBranch(String),
    /// There is no commit.
    #[error("the repository has no commit yet")]
    NoCommit,
    /// The commit cannot be read.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// No snapshot answers for a revision.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LookupError {
    /// No commit answers yet.
    #[error("no commit answers yet")]
    NoSnapshot,
    /// There is no such commit.
    #[error(transparent)]
    Unknown(#[from] RevisionError),
    /// The commit is not valid.
    #[error("the commit {} is not valid", .0.commit)]
    Rejected(Arc<Rejected>),
    /// The repository cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

/// How many commits are kept built beside the one that answers.
const KEPT: usize = 32;

/// Follows a branch and hands out snapshots.
#[derive(Debug)]
pub struct Controller {
    settings: Settings,
    active: ArcSwapOption<Snapshot>,
    known: Mutex<IndexMap<CommitId, Outcome>>,
    state: Mutex<State>,
    cache: Cache,
    poke: Condvar,
}

#[derive(Debug, Default)]
struct State {
    active: Option<Active>,
    observed: Option<Observed>,
    failed: Option<LastFailed>,
    conditions: HashMap<&'static str, Condition>,
    /// Somebody wants the branch to be looked at, or the loop to end.
    wanted: bool,
    stopping: bool,
}

impl Controller {
    /// Looks at the branch once and builds its commit.
    ///
    /// A commit that is not valid is no error: the controller waits for a better one. Neither is a
    /// remote that cannot be reached, if the mirror has the commit that answered last.
    ///
    /// # Errors
    ///
    /// Returns an error if there is nothing to answer from and nothing to wait for.
    pub fn start(settings: Settings) -> Result<Arc<Self>, StartError> {
        let controller = Arc::new(Self {
            settings,
            active: ArcSwapOption::empty(),
            known: Mutex::default(),
            state: Mutex::default(),
            cache: Cache::default(),
            poke: Condvar::new(),
        });
        controller.resume();
        if controller.active.load().is_some() {
            // A remote that is slow or dead must not delay the first answer: the loop looks there.
            controller.state().wanted = true;
            return Ok(controller);
        }
        controller.reconcile()?;
        Ok(controller)
    }

    /// Answers from the commit that answered before the restart, if the mirror has it.
    fn resume(&self) {
        let Target::Remote(mirror) = &self.settings.target else { return };
        let Some(live) = mirror.live() else { return };
        let Ok(repository) = mirror.repository() else { return };
        match build(&repository, live, &self.settings.path, &self.cache) {
            Ok(Outcome::Valid(snapshot)) => self.activate(&repository, snapshot),
            Ok(Outcome::Rejected(_)) | Err(_) => {
                tracing::warn!(commit = %live, "the commit that answered last cannot be used");
            }
        }
    }

    /// Looks at the branch at each interval, or when asked, until stopped.
    pub fn run(&self) {
        loop {
            let state = self.state();
            let (mut state, _) = self
                .poke
                .wait_timeout_while(state, self.settings.interval, |it| !it.wanted && !it.stopping)
                .unwrap_or_else(PoisonError::into_inner);
            if state.stopping {
                return;
            }
            state.wanted = false;
            drop(state);
            if let Err(error) = self.reconcile() {
                tracing::warn!(%error, "the branch could not be looked at");
            }
        }
    }

    /// Has the branch looked at now.
    pub fn poke(&self) {
        self.state().wanted = true;
        self.poke.notify_all();
    }

    /// Ends the loop.
    pub fn stop(&self) {
        self.state().stopping = true;
        self.poke.notify_all();
    }

    /// Looks at the branch and makes its commit answer, if it is a new one and valid.
    fn reconcile(&self) -> Result<(), StartError> {
        let (repository, head) = match self.observe() {
            Ok(observed) => observed,
            Err(error) => {
                self.note_fetch_failure(&error);
                return Err(error);
            }
        };
        let now = Timestamp::now();
        let changed = {
            let mut state = self.state();
            let before = state.observed.replace(Observed { commit: head, fetched_at: now });
            clear(&mut state, "FetchFailed");
            clear(&mut state, "RefMissing");
            before.is_none_or(|before| before.commit != head)
        };
        let active = self.active.load_full();
        if !changed || active.is_some_and(|active| active.commit == head) {
            let mut state = self.state();
            if state.active.as_ref().is_some_and(|active| active.commit == head) {
                state.failed = None;
                clear(&mut state, "CandidateRejected");
            }
            return Ok(());
        }
        match build(&repository, head, &self.settings.path, &self.cache) {
            Ok(outcome) => {
                self.remember(head, outcome.clone());
                match outcome {
                    Outcome::Valid(snapshot) => self.activate(&repository, snapshot),
                    Outcome::Rejected(rejected) => self.reject(&rejected),
                }
                Ok(())
            }
            Err(error) => {
                let mut state = self.state();
                // The next look tries again.
                state.observed = None;
                let message = format!("{head}: {}", error.source);
                state.failed =
                    Some(LastFailed { commit: head, stage: "load", diagnostics: Vec::new() });
                set(&mut state, "CandidateRejected", "True", "CorruptObjects", message);
                Err(error.into())
            }
        }
    }

    /// Returns the repository and the commit of the branch.
    fn observe(&self) -> Result<(Repository, CommitId), StartError> {
        let branch = self.settings.branch.as_deref();
        match &self.settings.target {
            Target::Local(path) => {
                let repository = Repository::discover(path)?;
                let head = repository.branch_head(branch).map_err(|_| match branch {
                    Some(branch) => StartError::NoBranch(branch.to_owned()),
                    None => StartError::NoCommit,
                })?;
                Ok((repository, head))
            }
            Target::Remote(mirror) => {
                let fetched = mirror.fetch(branch)?;
                Ok((mirror.repository()?, fetched.head))
            }
        }
    }

    fn note_fetch_failure(&self, error: &StartError) {
        let failure = match error {
            StartError::Fetch(error) => error.failure,
            StartError::NoBranch(_) | StartError::NoCommit => FetchFailure::RefNotFound,
            _ => FetchFailure::Other,
        };
        let kind = if failure == FetchFailure::RefNotFound { "RefMissing" } else { "FetchFailed" };
        let mut state = self.state();
        set(&mut state, kind, "True", failure.reason(), error.to_string());
        note_ready(&mut state);
    }

    fn activate(&self, repository: &Repository, snapshot: Arc<Snapshot>) {
        let commit = snapshot.commit;
        let groups = snapshot.estate.hierarchy.len();
        let info = repository.commit(commit).ok();
        self.remember(commit, Outcome::Valid(Arc::clone(&snapshot)));
        self.active.store(Some(snapshot));
        if let Target::Remote(mirror) = &self.settings.target
            && mirror.set_live(commit).is_err()
        {
            tracing::warn!(%commit, "the commit that answers could not be noted for a restart");
        }
        let mut state = self.state();
        state.active = info.map(|CommitInfo { id, author, time, subject }| Active {
            commit: id,
            author,
            time,
            subject,
            activated_at: Timestamp::now(),
            groups,
        });
        state.failed = None;
        clear(&mut state, "CandidateRejected");
        note_ready(&mut state);
        tracing::info!(%commit, groups, "the commit answers");
    }

    fn reject(&self, rejected: &Rejected) {
        let errors: Vec<&diagnostic::Diagnostic> = rejected
            .diagnostics
            .iter()
            .filter(|it| it.severity == diagnostic::Severity::Error)
            .collect();
        let mut state = self.state();
        let serving = state.active.as_ref().map_or_else(
            || "no commit answers".to_owned(),
            |active| format!("still serving {}", active.commit),
        );
        let message = format!("{}: {} errors; {serving}", rejected.commit, errors.len());
        set(&mut state, "CandidateRejected", "True", "ValidationFailed", message);
        state.failed = Some(LastFailed {
            commit: rejected.commit,
            stage: "check",
            diagnostics: rejected.diagnostics.iter().map(diagnostic::to_value).collect(),
        });
        note_ready(&mut state);
        drop(state);
        for error in errors.iter().take(10) {
            let start = error.place.span.start;
            tracing::error!(
                commit = %rejected.commit,
                kind = %error.kind,
                "{}:{}:{}: {}", error.place.file, start.line, start.column, error.message
            );
        }
        tracing::error!(commit = %rejected.commit, errors = errors.len(), "the commit is rejected");
    }

    fn remember(&self, commit: CommitId, outcome: Outcome) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.shift_remove(&commit);
        known.insert(commit, outcome);
        while known.len() > KEPT {
            known.shift_remove_index(0);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the snapshot that answers.
    ///
    /// # Errors
    ///
    /// Returns an error if no commit answers yet.
    pub fn snapshot(&self) -> Result<Arc<Snapshot>, LookupError> {
        self.active.load_full().ok_or(LookupError::NoSnapshot)
    }

    /// Returns the snapshot of a revision, building it if need be. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit, or it is not valid.
    pub fn snapshot_at(&self, revision: &str) -> Result<Arc<Snapshot>, LookupError> {
        match self.outcome_of(revision)?.1 {
            Outcome::Valid(snapshot) => Ok(snapshot),
            Outcome::Rejected(rejected) => Err(LookupError::Rejected(rejected)),
        }
    }

    /// Returns what came of a revision, building it if need be. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit or it cannot be read.
    pub fn outcome_of(&self, revision: &str) -> Result<(CommitInfo, Outcome), LookupError> {
        let unreadable = |error: &dyn std::fmt::Display| LookupError::Unreadable(error.to_string());
        let repository = self.repository().map_err(|error| unreadable(&error))?;
        let commit = repository.resolve(revision)?;
        let info = repository.commit(commit).map_err(|error: ReadError| unreadable(&error))?;
        if let Some(active) = self.active.load_full().filter(|active| active.commit == commit) {
            return Ok((info, Outcome::Valid(active)));
        }
        let known = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.get(&commit).cloned()
        };
        if let Some(outcome) = known {
            return Ok((info, outcome));
        }
        // A cache of its own: what the branch uses stays.
        let outcome = build(&repository, commit, &self.settings.path, &Cache::default())
            .map_err(|error| unreadable(&error.source))?;
        self.remember(commit, outcome.clone());
        Ok((info, outcome))
    }

    /// Returns the commits that have been built, newest first. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository cannot be opened.
    pub fn commits(&self) -> Result<Vec<(CommitInfo, Outcome)>, LookupError> {
        let repository =
            self.repository().map_err(|error| LookupError::Unreadable(error.to_string()))?;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut commits: Vec<(CommitInfo, Outcome)> = known
            .into_iter()
            .filter_map(|(commit, outcome)| Some((repository.commit(commit).ok()?, outcome)))
            .collect();
        commits.sort_by_key(|(info, _)| std::cmp::Reverse((info.time, info.id)));
        Ok(commits)
    }

    fn repository(&self) -> Result<Repository, OpenError> {
        match &self.settings.target {
            Target::Local(path) => Repository::discover(path),
            Target::Remote(mirror) => mirror.repository(),
        }
    }

    /// Returns how things stand.
    pub fn status(&self) -> Status {
        let branch = self.settings.branch.clone().or_else(|| self.repository().ok()?.head_branch());
        let state = self.state();
        let mut conditions: Vec<Condition> = state.conditions.values().cloned().collect();
        conditions.sort_by_key(|it| (it.kind != "Ready", it.kind));
        Status {
            repository: Watched {
                url: self.settings.address.clone(),
                branch,
                path: self.settings.path.clone(),
            },
            active: state.active.clone(),
            observed: state.observed,
            last_failed: state.failed.clone(),
            pinned: None,
            conditions,
        }
    }

    /// Returns where the groups come from, for messages.
    pub fn address(&self) -> &str {
        &self.settings.address
    }

    /// Returns the directory of the groups in the repository.
    pub fn path(&self) -> &str {
        &self.settings.path
    }
}

/// Sets a condition; the time of its last transition stays if nothing but the message changes.
fn set(state: &mut State, kind: &'static str, status: &'static str, reason: &str, message: String) {
    let now = Timestamp::now();
    let before = state.conditions.get(kind).filter(|it| it.status == status && it.reason == reason);
    let last_transition = before.map_or(now, |it| it.last_transition);
    let condition = Condition { kind, status, reason: reason.to_owned(), message, last_transition };
    state.conditions.insert(kind, condition);
}

fn clear(state: &mut State, kind: &str) {
    state.conditions.remove(kind);
}

fn note_ready(state: &mut State) {
    match &state.active {
        Some(active) => {
            let message = format!("serving {}", active.commit);
            set(state, "Ready", "True", "Serving", message);
        }
        None => {
            set(state, "Ready", "False", "NoSnapshotYet", "no commit answers yet".to_owned());
        }
    }
}
