//! Following a branch: two threads, what they share, and what operators may ask of them.
//!
//! The *looker* observes and fetches; the *builder* verifies, builds and activates the newest
//! commit that the looker found. Polls, webhooks and operators only say "look now".
#![expect(clippy::disallowed_methods, reason = "ages are measured by the clock")]

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::admission::Verified;
use super::build::{BuildError, Rejected};
use super::cache::Cache;
use super::clock::Now;
use super::commit_status::CommitStatusReporter;
use super::edit_history::Edits;
use super::heads::HeadChecks;
use super::journal::Journal;
use super::live::LiveSnapshots;
use super::schedule;
use super::settings::{Settings, Target};
use super::snapshot_cache::Retained;
use super::state::{CheckInsTrouble, Freshness, ReconcileState, SourceKind};
use super::status::{Remote, Status, Watched};
use super::storage::StorageError;
use super::supervise::{supervise, supervised};
use super::trigger::Trigger;
use super::turns::Turns;
use crate::git::{
    FetchError, MirrorError, OpenError, ReadError, Repository, RevisionError, SignatureFault,
};
use crate::model::CommitId;
use crate::snapshot::{LiveSnapshot, Snapshot};
use crate::telemetry::Metrics;

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
    /// The journal cannot be used.
    #[error("the journal in the data directory cannot be used")]
    Journal(#[source] std::io::Error),
    /// A thread cannot be started.
    #[error("a thread cannot be started")]
    Thread(#[source] std::io::Error),
}

/// No snapshot answers for a revision.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LookupError {
    /// No commit answers yet.
    #[error("no commit answers yet")]
    NoSnapshot,
    /// The snapshot that answered is too old to do so.
    #[error("the branch was last seen {} s ago, longer than answers may be old", .0.as_secs())]
    Stale(Duration),
    /// There is no such commit.
    #[error(transparent)]
    Unknown(#[from] RevisionError),
    /// A commit that answered elsewhere has not arrived.
    #[error("the commit {0} is not here yet")]
    NotHereYet(CommitId),
    /// The commit is not valid.
    #[error("the commit {} is not valid", .0.commit)]
    Rejected(Arc<Rejected>),
    /// The commit is not signed as the settings demand.
    #[error(transparent)]
    Unverified(#[from] SignatureFault),
    /// What was asked for could not be written to disk.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Too many wait for other commits to be built.
    #[error("other commits are being built: try again soon")]
    Busy,
    /// No commit answered at a time.
    #[error("no commit answered here at {0}")]
    NothingThen(Timestamp),
    /// The repository cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

/// Follows a branch and hands out snapshots.
#[derive(Debug)]
pub struct Controller {
    pub(super) settings: Settings,
    pub(super) metrics: Arc<Metrics>,
    pub(super) live_snapshots: LiveSnapshots,
    pub(super) retained: Mutex<Retained>,
    pub(super) journal: Mutex<Journal>,
    pub(super) cache: Cache,
    pub(super) turns: Turns,
    pub(super) edits: Edits,
    pub(super) reporter: CommitStatusReporter,
    pub(super) head_checks: HeadChecks,
    state: Mutex<ReconcileState>,
    pub(super) changed: Condvar,
    /// Held while the branch is fetched and its head accepted, never while something is pushed.
    talking: Mutex<()>,
    /// Held while the commit that answers is changed.
    activating: Mutex<()>,
    pub(super) verified: Verified,
    started_at: Timestamp,
}

impl Controller {
    /// Prepares to follow a branch.
    ///
    /// What answered last answers again, from the mirror and without a look at the remote. A
    /// repository of this machine is looked at once; a remote is left to the threads.
    ///
    /// # Errors
    ///
    /// Returns an error if a repository of this machine or the journal cannot be used.
    pub fn start(settings: Settings, metrics: Arc<Metrics>) -> Result<Arc<Self>, StartError> {
        let journal = match &settings.data {
            Some(data) => {
                Journal::open(&data.join("journal"), Now::read()).map_err(StartError::Journal)?
            }
            None => Journal::default(),
        };
        let now = Now::read();
        let source = match &settings.target {
            Target::Local(_) => SourceKind::Local,
            Target::Remote(_) => SourceKind::Remote,
        };
        let state = ReconcileState::new(settings.policy, source, now);
        let controller = Arc::new(Self {
            settings,
            metrics,
            live_snapshots: LiveSnapshots::default(),
            retained: Mutex::default(),
            journal: Mutex::new(journal),
            cache: Cache::default(),
            turns: Turns::default(),
            edits: Edits::default(),
            reporter: CommitStatusReporter::default(),
            head_checks: HeadChecks::default(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            talking: Mutex::default(),
            activating: Mutex::default(),
            verified: Verified::default(),
            started_at: now.wall,
        });
        controller.check_storage();
        controller.recover();
        if controller.live_snapshots.commit().is_some() {
            // A remote that is slow or dead must not delay the first answer.
            controller.want(Trigger::Startup);
            return Ok(controller);
        }
        match &controller.settings.target {
            Target::Remote(_) => controller.want(Trigger::Startup),
            // What is wrong with a repository of this machine will not mend itself.
            Target::Local(_) => {
                controller.look(Trigger::Startup)?;
                controller.build_candidate();
            }
        }
        Ok(controller)
    }

    /// Waits until it is known whether there is something to answer from. Blocking.
    pub fn wait_until_decided(&self, longest: Duration) {
        let undecided = |it: &mut ReconcileState| it.is_undecided();
        // Whether it was in time shows in the answers.
        let _decided = self.changed.wait_timeout_while(self.state(), longest, undecided);
    }

    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// Returns an error if one cannot be started.
    pub fn spawn(self: &Arc<Self>) -> Result<Threads, StartError> {
        let start = |name: &'static str, work: fn(&Self)| {
            let controller = Arc::clone(self);
            std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || {
                    supervise(
                        name,
                        || work(&controller),
                        |longest| controller.stops_within(longest),
                    );
                })
                .map_err(StartError::Thread)
        };
        let mut threads = vec![
            start("looker", Self::keep_looking)?,
            start("builder", Self::keep_building)?,
            start("edits", Self::keep_edits)?,
            start("journal", Self::keep_journal)?,
        ];
        if self.follows_a_remote() {
            threads.push(start("tidier", Self::keep_tidy)?);
            threads.push(start("refs", Self::keep_others)?);
        }
        if self.settings.reporting.is_some() {
            threads.push(start("reporter", Self::keep_reporting)?);
            threads.push(start("heads", Self::keep_checking_heads)?);
        }
        Ok(Threads(threads))
    }

    /// Waits until the daemon stops, or so long; returns whether it stops.
    fn stops_within(&self, longest: Duration) -> bool {
        let goes_on = |it: &mut ReconcileState| !it.stopping;
        let waited = self.changed.wait_timeout_while(self.state(), longest, goes_on);
        waited.unwrap_or_else(PoisonError::into_inner).0.stopping
    }

    fn keep_looking(&self) {
        let mut wait =
            if self.state().requested_fetch.is_some() { Duration::ZERO } else { self.next_look() };
        let mut asked: Option<Instant> = None;
        loop {
            let until = Instant::now() + wait;
            let trigger = {
                let mut state = self.state();
                loop {
                    if state.stopping {
                        return;
                    }
                    let left = until.saturating_duration_since(Instant::now());
                    let left = match state.requested_fetch {
                        None => left,
                        Some(Trigger::Startup) => Duration::ZERO,
                        Some(_) => schedule::until_asked(asked.map(|it| it.elapsed())).min(left),
                    };
                    if left.is_zero() {
                        break;
                    }
                    let waited = self.changed.wait_timeout(state, left);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                if state.requested_fetch.is_some_and(|it| it != Trigger::Startup) {
                    asked = Some(Instant::now());
                }
                let again = state.failure.is_some() || !state.expected.is_empty();
                let itself = if again { Trigger::Retry } else { Trigger::Poll };
                state.requested_fetch.take().unwrap_or(itself)
            };
            if let Err(error) = self.look(trigger) {
                tracing::warn!(%error, "the branch could not be looked at");
            }
            wait = self.next_look();
        }
    }

    fn keep_building(&self) {
        loop {
            {
                let idle = |it: &mut ReconcileState| !it.stopping && !it.has_pending();
                let state = self
                    .changed
                    .wait_while(self.state(), idle)
                    .unwrap_or_else(PoisonError::into_inner);
                if state.stopping {
                    return;
                }
            }
            if supervised("builder", || self.build_candidate()).is_none() {
                self.note_panic();
            }
        }
    }

    /// Has the branch looked at now.
    pub fn want(&self, trigger: Trigger) {
        self.state().requested_fetch = Some(trigger);
        self.changed.notify_all();
    }

    /// Has the branch looked at now, and again for a while until a commit is there.
    pub fn expect(&self, commit: Option<CommitId>) {
        if let Some(commit) = commit {
            self.state().expect(commit, Now::read());
        }
        self.want(Trigger::Webhook);
    }

    /// Ends what is under way with the remote, pushes included: their time is up.
    pub fn interrupt(&self) {
        self.settings.transport.interrupt.interrupt();
    }

    /// Ends the threads.
    pub fn stop(&self) {
        self.state().stopping = true;
        self.changed.notify_all();
        self.reporter.stop();
        self.head_checks.stop();
    }

    /// Returns the snapshot that answers.
    ///
    /// # Errors
    ///
    /// Returns an error if no commit answers yet, or the one that did is too old.
    pub fn snapshot(&self) -> Result<Arc<Snapshot>, LookupError> {
        self.live().map(|it| Arc::clone(it.snapshot()))
    }

    /// Returns the same with the responses that it has written.
    ///
    /// # Errors
    ///
    /// As [`Controller::snapshot`].
    pub fn live(&self) -> Result<Arc<LiveSnapshot>, LookupError> {
        let live = self.live_snapshots.stable().ok_or(LookupError::NoSnapshot)?;
        match self.freshness() {
            Freshness::Stale(age, super::OnStale::Refuse) => Err(LookupError::Stale(age)),
            Freshness::Stale(..) | Freshness::Fresh => Ok(live),
        }
    }

    /// Returns how fresh the answers are.
    pub fn freshness(&self) -> Freshness {
        // Where nobody minds, no lock is taken on the way to an answer.
        if self.settings.policy.max_staleness.is_none() {
            return Freshness::Fresh;
        }
        self.state().freshness(Now::read())
    }

    /// Returns whether the daemon is ready: a commit answers, and policy does not mind its age.
    pub fn is_ready(&self) -> bool {
        self.live_snapshots.commit().is_some()
            && matches!(
                self.freshness(),
                Freshness::Fresh | Freshness::Stale(_, super::OnStale::Serve)
            )
    }

    /// Returns how things stand.
    pub fn status(&self) -> Status {
        let branch = self.settings.branch.clone().or_else(|| self.repository().ok()?.head_branch());
        let now = Now::read();
        let mut state = self.state();
        let conditions = state.conditions(now);
        let staleness = state.last_contact.map(|it| now.since(it).as_secs());
        Status {
            version: env!("CARGO_PKG_VERSION"),
            started_at: self.started_at,
            repository: Watched {
                url: self.settings.address.clone(),
                branch,
                path: self.settings.path.clone(),
            },
            active: state.active.clone(),
            observed: state.observed,
            remote: Remote {
                last_attempt: state.last_attempt,
                last_contact: state.observed.map(|it| it.fetched_at),
                last_change: state.last_change,
                staleness_seconds: staleness,
                consecutive_failures: state.failures,
                error: state.failure.as_ref().map(|(_, message)| message.clone()),
                expected: state.expected.iter().map(|it| it.commit).collect(),
            },
            last_failed: state.last_failed().cloned(),
            pinned: state.pinned(),
            verification: self.settings.verification.mode.as_str(),
            conditions,
        }
    }

    /// Notes what is wrong with the store of check-ins, for the status.
    pub fn note_check_ins(&self, trouble: CheckInsTrouble) {
        self.state().check_ins = trouble;
    }

    /// Returns the head of the branch if no commit answers and it lacks the directory of the groups.
    pub fn lacks_path(&self) -> Option<CommitId> {
        if self.live_snapshots.commit().is_some() {
            return None;
        }
        let head = {
            let state = self.state();
            // The head of before the restart says nothing: the branch may have the directory by now.
            state.last_contact?;
            state.head()?
        };
        let repository = self.repository().ok()?;
        let has =
            repository.has_directory(head, &self.settings.path, &self.settings.budget).ok()?;
        (!has).then_some(head)
    }

    /// Returns where the groups come from, for messages.
    pub fn address(&self) -> &str {
        &self.settings.address
    }

    /// Returns the directory of the groups in the repository.
    pub fn path(&self) -> &str {
        &self.settings.path
    }

    /// Opens the repository that is followed.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be opened.
    pub fn repository(&self) -> Result<Repository, OpenError> {
        match &self.settings.target {
            Target::Local(path) => Repository::discover(path),
            Target::Remote(mirror) => mirror.repository(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ReconcileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn talking(&self) -> MutexGuard<'_, ()> {
        self.talking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no commit is on its way to answer. Blocking.
    pub(super) fn wait_until_idle(&self) {
        let busy = |it: &mut ReconcileState| it.is_deciding() && !it.stopping;
        drop(self.changed.wait_while(self.state(), busy).unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn activating(&self) -> MutexGuard<'_, ()> {
        self.activating.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }
}

impl From<BuildError> for LookupError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Unreadable { source, .. } => Self::Unreadable(source.to_string()),
            BuildError::Busy => Self::Busy,
            BuildError::Cancelled(_) => Self::Unreadable(error.to_string()),
        }
    }
}

impl From<ReadError> for LookupError {
    fn from(error: ReadError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// The threads of a controller.
#[derive(Debug)]
pub struct Threads(Vec<std::thread::JoinHandle<()>>);

impl Threads {
    /// Waits until they have ended, after [`Controller::stop`].
    pub fn join(self) {
        for thread in self.0 {
            if thread.join().is_err() {
                tracing::error!("a thread of the control loop failed");
            }
        }
    }
}
