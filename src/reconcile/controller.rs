//! The controller: runs the threads of the loop, and is what HTTP asks.
//!
//! A commit goes through the stages in this order: the [`Fetcher`] fetches the branch, the state decides
//! whether its head is a candidate, the [`Builder`] has it verified and built and asks the `Activator` to
//! make it live. [`Stages`] composes them.
#![expect(clippy::disallowed_methods, reason = "an end has a deadline")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::attribution::Attribution;
use super::blame::{AskedNode, BlameError, BlamedValue, LocatedValue};
use super::builder::Builder;
use super::clock::Now;
use super::commit_status::CommitStatusReporter;
use super::edit_history::EditHistory;
use super::errors::{LookupError, StorageError};
use super::fetcher::Fetcher;
use super::journal::Journal;
use super::live::LiveGuard;
use super::lookup::{CommitDetails, FollowedSnapshot};
use super::other_refs::OtherRefs;
use super::policy::{OnStale, Policy};
use super::pull_requests::PullRequestChecker;
use super::recorder::Recorder;
use super::repacker::Repacker;
use super::settings::Settings;
use super::stages::{ForgeStages, Stages};
use super::state::{CheckInsTrouble, Freshness, ReconcileState, SourceKind};
use super::status::{FollowedBranch, Status};
use super::supervise::supervise;
use super::trigger::Trigger;
use super::write::{WriteError, WriteSettings, Writer};
use crate::changeset::Operation;
use crate::forge::{ForgePages, MergedPullRequest, merged_pull_request};
use crate::git::{CommitInfo, FetchError, MirrorError, OpenError};
use crate::history::History;
use crate::model::CommitId;
use crate::priority::STACK;
use crate::snapshot::Snapshot;
use crate::telemetry::{Metrics, Scrape};

/// How often it is checked whether a thread has ended.
const STEP: Duration = Duration::from_millis(10);

/// The controller cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The mirror cannot be used.
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    /// The repository cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The repository of this machine cannot be read, or lacks the branch.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The journal cannot be used.
    #[error("the journal `{}` cannot be used", .path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// A thread cannot be started.
    #[error("a thread cannot be started")]
    Thread(#[source] std::io::Error),
}

/// Follows a branch and serves its snapshots.
#[derive(Debug)]
pub struct Controller {
    policy: Policy,
    started_at: Timestamp,
    stages: Stages,
}

impl Controller {
    /// Prepares to follow a branch.
    ///
    /// The commit that was live last is live again, from the mirror and without a fetch. A
    /// repository of this machine is read once; a remote is left to the threads.
    ///
    /// # Errors
    ///
    /// Returns an error if a repository of this machine or the journal cannot be used.
    pub fn start(settings: Settings, metrics: Arc<Metrics>) -> Result<Arc<Self>, StartError> {
        let now = Now::read();
        let journal = match &settings.data {
            Some(data) => {
                let path = data.join("journal");
                Journal::open(&path, now).map_err(|source| StartError::Journal { path, source })?
            }
            None => Journal::default(),
        };
        let policy = settings.policy;
        let stages = Stages::compose(settings, journal, metrics, now);
        stages.recorder.check_storage();
        stages.recovery().run();
        match stages.source.kind() {
            // What is wrong with a repository of this machine does not go away by itself.
            SourceKind::Local if stages.live.commit().is_none() => {
                stages.fetcher.fetch(Trigger::Startup)?;
                stages.builder.build_candidate();
            }
            // A remote that is slow or dead must not delay the first answer.
            SourceKind::Local | SourceKind::Remote => stages.state.request_fetch(Trigger::Startup),
        }
        Ok(Arc::new(Self { policy, started_at: now.wall, stages }))
    }

    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// Returns an error if one cannot be started.
    pub fn spawn(&self) -> Result<Threads, StartError> {
        let stages = &self.stages;
        let mut remote = vec![self.thread("fetcher", &stages.fetcher, Fetcher::run)?];
        let mut others = vec![
            self.thread("builder", &stages.builder, Builder::run)?,
            self.thread("edit-history", &stages.edits, EditHistory::run)?,
            self.thread("journal", &stages.recorder, Recorder::run)?,
        ];
        if self.follows_a_remote() {
            others.push(self.thread("repacker", &stages.repacker, Repacker::run)?);
            remote.push(self.thread("other-refs", &stages.other_refs, OtherRefs::run)?);
        }
        if let Some(ForgeStages { reporter, pull_requests, .. }) = &stages.forge {
            remote.push(self.thread("commit-status", reporter, CommitStatusReporter::run)?);
            others.push(self.thread("pull-requests", pull_requests, PullRequestChecker::run)?);
        }
        Ok(Threads { remote, others })
    }

    fn thread<S: Send + Sync + 'static>(
        &self,
        name: &'static str,
        stage: &Arc<S>,
        run: fn(&S),
    ) -> Result<JoinHandle<()>, StartError> {
        let (stage, state) = (Arc::clone(stage), Arc::clone(&self.stages.state));
        std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(STACK)
            .spawn(move || supervise(name, || run(&stage), |longest| state.stops_within(longest)))
            .map_err(StartError::Thread)
    }

    /// Returns a writer to the branch that is followed.
    pub fn writer(&self, settings: WriteSettings) -> Writer {
        Writer::new(settings, self.stages.writer_parts())
    }

    /// Waits until it is known whether there is something to answer from, or the threads are to end. Blocking.
    pub fn wait_until_decided(&self, longest: Duration) {
        // Whether it was in time shows in the answers.
        let undecided = |it: &mut ReconcileState| it.is_undecided() && !it.stopping;
        drop(self.stages.state.wait_while_for(longest, undecided));
    }

    /// Returns whether there is something to answer from.
    pub fn has_live_commit(&self) -> bool {
        self.stages.live.commit().is_some()
    }

    /// Requests a fetch.
    pub fn request_fetch(&self, trigger: Trigger) {
        self.stages.state.request_fetch(trigger);
    }

    /// Requests a fetch, and more of them until the remote shows a commit.
    pub fn expect_commit(&self, commit: Option<CommitId>) {
        let Some(commit) = commit else { return self.request_fetch(Trigger::Webhook) };
        let was_head = self.stages.recorder.journal().was_seen(commit);
        self.stages.state.expect_commit(commit, was_head);
    }

    /// Ends what is under way with the remote, pushes included: their time is up.
    pub fn interrupt(&self) {
        self.stages.source.interrupt();
    }

    /// Ends the threads.
    pub fn stop(&self) {
        self.stages.state.stop();
        if let Some(ForgeStages { statuses, pull_requests, .. }) = &self.stages.forge {
            statuses.stop();
            pull_requests.stop();
        }
    }

    /// Returns the live snapshot.
    ///
    /// # Errors
    ///
    /// Returns an error if no commit is live yet, or the live one is too old.
    pub fn snapshot(&self) -> Result<Arc<Snapshot>, LookupError> {
        self.live().map(|it| Arc::clone(it.snapshot()))
    }

    /// Returns the live snapshot with the responses that it has written.
    ///
    /// # Errors
    ///
    /// As [`Controller::snapshot`].
    pub fn live(&self) -> Result<LiveGuard, LookupError> {
        let why = || LookupError::NoSnapshot(self.stages.state.lock().why_no_snapshot());
        let live = self.stages.live.stable().ok_or_else(why)?;
        self.check_fresh().map(|()| live)
    }

    /// Checks that this daemon does not refuse to answer nodes for not having seen the branch.
    ///
    /// # Errors
    ///
    /// Returns an error if it does.
    pub fn check_fresh(&self) -> Result<(), LookupError> {
        match self.freshness() {
            Freshness::Stale(age, OnStale::Refuse) => Err(LookupError::Stale(age)),
            Freshness::Stale(..) | Freshness::Fresh => Ok(()),
        }
    }

    /// Returns how fresh the answers are.
    pub fn freshness(&self) -> Freshness {
        // Without `max_staleness`, no lock is taken on the way to an answer.
        if self.policy.max_staleness.is_none() {
            return Freshness::Fresh;
        }
        self.stages.state.lock().freshness(Now::read())
    }

    /// Returns the status document.
    pub fn status(&self) -> Status {
        let watched = FollowedBranch {
            url: self.stages.source.address().to_owned(),
            branch: self.stages.source.branch_name(),
            path: self.stages.source.path().to_owned(),
        };
        let now = Now::read();
        let mut state = self.stages.state.lock();
        Status {
            version: env!("CARGO_PKG_VERSION"),
            started_at: self.started_at,
            repository: watched,
            active: state.active.clone(),
            observed: state.observed,
            remote: state.remote(now),
            last_failed: state.last_failed().cloned(),
            pin: state.pin().cloned(),
            verification: self.stages.verifier.mode().as_str(),
            conditions: state.conditions(now),
        }
    }

    /// Returns the status, for metrics.
    pub fn scrape(&self) -> Scrape {
        self.status().scrape(self.stages.store.all().len())
    }

    /// Notes what is wrong with the store of check-ins, for the status.
    pub fn note_check_ins(&self, trouble: CheckInsTrouble) {
        self.stages.state.lock().check_ins = trouble;
    }

    /// Returns the head of the branch if no commit is live and it lacks the directory of the groups.
    pub fn lacks_path(&self) -> Option<CommitId> {
        if self.stages.live.commit().is_some() {
            return None;
        }
        let head = {
            let state = self.stages.state.lock();
            // The head of before the restart says nothing: the branch may have the directory by now.
            state.last_contact?;
            state.head()?
        };
        let repository = self.stages.source.repository().ok()?;
        let has_path =
            self.stages.source.has_path(&repository, head, &self.stages.store.budget()).ok()?;
        (!has_path).then_some(head)
    }

    /// Returns the address of the repository for messages, without credentials.
    pub fn address(&self) -> &str {
        self.stages.source.address()
    }

    /// Returns the directory of the groups in the repository.
    pub fn path(&self) -> &str {
        self.stages.source.path()
    }

    /// Returns whether commits come from a remote, rather than from a repository of this machine.
    pub fn follows_a_remote(&self) -> bool {
        self.stages.source.kind() == SourceKind::Remote
    }

    /// Returns the full name of the ref that is followed, if there is one.
    pub fn watched_ref(&self) -> Option<String> {
        self.stages.source.watched_ref()
    }

    /// Returns the text of a file in a commit, by its path from the root of the groups; none if the
    /// commit lacks it. Blocking.
    pub fn text(&self, commit: CommitId, path: &str) -> Option<String> {
        let repository = self.stages.source.repository().ok()?;
        self.stages.source.text(&repository, commit, path).ok().flatten()
    }

    /// Returns the newest commits up to one that changed a file, by its path from the root of the groups, each with
    /// the pull request that its message names: at most so many. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository cannot be read.
    pub fn file_changes(
        &self,
        from: CommitId,
        path: &str,
        most: usize,
    ) -> Result<Vec<(CommitInfo, Option<MergedPullRequest>)>, LookupError> {
        /// How many commits are searched: a few milliseconds.
        const AMONG: usize = 2_000;
        let repository = self.stages.source.repository()?;
        let pages = self.stages.pages(&repository);
        let path = self.stages.source.path_of(path);
        let mut changes = Vec::new();
        for id in repository.file_changes(from, &path, most, AMONG)? {
            let message = repository.message(id)?;
            let pull_request = merged_pull_request(&message, pages.as_ref());
            changes.push((repository.commit(id)?, pull_request));
        }
        Ok(changes)
    }

    /// Returns the pages of the repository on its forge, if it has some that are known. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository cannot be opened.
    pub fn forge_pages(&self) -> Result<Option<ForgePages>, LookupError> {
        Ok(self.stages.pages(&self.stages.source.repository()?))
    }

    /// Returns when and how often groups were edited up to a commit; none where it is not known (yet).
    pub fn edit_history(&self, commit: CommitId) -> Option<Arc<History>> {
        self.stages.edits.of(commit)
    }

    /// Makes a commit live until [`Controller::resume`]. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit, if it may not be live, or if the pin cannot be
    /// written to disk; then nothing is changed.
    pub fn pin(&self, revision: &str, by: Attribution) -> Result<CommitId, LookupError> {
        self.stages.operator.pin(revision, by)
    }

    /// Follows the branch again, also where it left its history.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written to disk; then nothing is changed.
    pub fn resume(&self, by: Attribution) -> Result<(), StorageError> {
        self.stages.operator.resume(by)
    }

    /// Has the branch fetched for an operator. Blocking.
    pub fn reconcile(&self, by: Attribution) {
        self.stages.operator.request_fetch(by);
    }

    /// Records that an operator had a node forgotten. Blocking.
    pub fn note_forgotten(&self, node: String, actor: Option<String>) {
        self.stages.operator.note_forgotten(node, actor);
    }

    /// Checks whether a write to a snapshot's commit would be accepted, regardless of rights. Blocking.
    ///
    /// # Errors
    ///
    /// Returns the error of the write.
    pub fn check_write(&self, base: &Snapshot, operation: &Operation) -> Result<(), WriteError> {
        self.stages.planner.check(base, operation)
    }

    /// Returns the snapshot of a revision, building it if need be. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit, or it is not valid or not signed as demanded.
    pub fn snapshot_at(&self, revision: &str) -> Result<Arc<Snapshot>, LookupError> {
        self.stages.lookup.snapshot_at(revision)
    }

    /// Returns the snapshot of a revision to compare with another, signed or not. It must not answer
    /// agents. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit, or it is not valid.
    pub fn snapshot_to_compare(&self, revision: &str) -> Result<Arc<Snapshot>, LookupError> {
        self.stages.lookup.snapshot_to_compare(revision)
    }

    /// Finds the commit of each value that a node gets at a commit, as long as the walk is wanted.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if no value has the key, the walk was stopped, or a commit cannot be read.
    pub fn blame(
        &self,
        commit: CommitId,
        asked: AskedNode<'_>,
        key: Option<&str>,
        is_wanted: &(dyn Fn() -> bool + Sync),
        report: &mut dyn FnMut(BlamedValue),
    ) -> Result<(), BlameError> {
        let repository = self.stages.source.repository()?;
        let blame = self.stages.store.blame(&repository, commit, is_wanted)?;
        let blame = blame.with_pages(self.stages.pages(&repository)).shown_as(asked.shown);
        blame.run(commit, asked.node, key, report)
    }

    /// Returns each value that a node gets at a commit with the place where it is written. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the node has no answer, or the commit cannot be read.
    pub fn locate(
        &self,
        commit: CommitId,
        asked: AskedNode<'_>,
    ) -> Result<Vec<LocatedValue>, BlameError> {
        let repository = self.stages.source.repository()?;
        let is_wanted = || true;
        let blame = self.stages.store.blame(&repository, commit, &is_wanted)?;
        blame.shown_as(asked.shown).locate(commit, asked.node)
    }

    /// Returns the snapshot of a commit that was live on another replica, and requests a fetch if the
    /// commit has not arrived. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not here yet, or not valid.
    pub fn snapshot_from_elsewhere(&self, commit: CommitId) -> Result<Arc<Snapshot>, LookupError> {
        self.stages.lookup.snapshot_from_elsewhere(commit)
    }

    /// Returns the snapshot of a commit if the history that is followed has it, or it was live here. A fetch is
    /// requested if the branch may have it by now. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not here yet, or not valid.
    pub fn followed_snapshot(&self, commit: CommitId) -> Result<FollowedSnapshot, LookupError> {
        self.stages.lookup.followed_snapshot(commit)
    }

    /// Returns the snapshot that was live here at a time. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if none was, or the time has not come.
    pub fn snapshot_then(&self, time: Timestamp) -> Result<Arc<Snapshot>, LookupError> {
        self.stages.lookup.snapshot_then(time)
    }

    /// Returns the commit that a revision names, valid or not. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit.
    pub fn resolve(&self, revision: &str) -> Result<CommitId, LookupError> {
        self.stages.lookup.resolve(&self.stages.source.repository()?, revision)
    }

    /// Returns what the repository says of some commits, as far as it has them. Blocking.
    pub fn commit_infos(&self, commits: &BTreeSet<CommitId>) -> BTreeMap<CommitId, CommitInfo> {
        let Ok(repository) = self.stages.source.repository() else { return BTreeMap::new() };
        let known = commits.iter().filter_map(|it| repository.commit(*it).ok());
        known.map(|it| (it.id, it)).collect()
    }

    /// Returns the details of a revision, building it if need be. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit or it cannot be read.
    pub fn commit_details(&self, revision: &str) -> Result<CommitDetails, LookupError> {
        self.stages.lookup.details(revision)
    }

    /// Returns the commits that are kept built, newest first. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository cannot be opened.
    pub fn commits(&self) -> Result<Vec<CommitDetails>, LookupError> {
        self.stages.lookup.commits()
    }
}

/// The threads of a controller.
#[derive(Debug)]
pub struct Threads {
    /// Those that may wait for the remote, or for the forge.
    remote: Vec<JoinHandle<()>>,
    others: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Waits until they have ended, after [`Controller::stop`] and [`Controller::interrupt`]; for those that may wait
    /// for the remote or the forge no longer than `longest`. Returns whether all have ended.
    pub fn join(self, longest: Duration) -> bool {
        let until = Instant::now() + longest;
        while Instant::now() < until && !self.remote.iter().all(JoinHandle::is_finished) {
            std::thread::sleep(STEP);
        }
        let (ended, hanging): (Vec<_>, Vec<_>) =
            self.remote.into_iter().partition(JoinHandle::is_finished);
        for thread in self.others.into_iter().chain(ended) {
            if thread.join().is_err() {
                tracing::error!("a thread of the reconcile loop panicked");
            }
        }
        hanging.is_empty()
    }
}
