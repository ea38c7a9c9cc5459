//! Writes through the API: each becomes a commit on the tip of the branch.
//!
//! One thread takes the writes that wait, in order; each is applied to what the one before it left,
//! validated as a whole, and committed. All of them are pushed at once, by compare and swap; where
//! somebody else was faster, they are applied anew to the new tip. Clients are answered when their
//! commit is at the remote and answers here. A crash leaves objects that no ref names, or a commit
//! at the remote that the next look finds; a client that was told nothing sends its request again.
#![expect(clippy::disallowed_methods, reason = "activations are measured by the clock")]

mod idempotency;
mod message;
mod propose;
mod receipt;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::activate::Admitted;
use super::admission::Trust;
use super::build::Outcome;
use super::clock::Now;
use super::controller::{Controller, LookupError};
use super::settings::Target;
use super::state::{Cause, Kept, Pushed};
use super::storage::StorageError;
use super::supervise::supervised;
use super::trigger::Trigger;
use crate::changeset::{Changeset, Operation, Rejection, Scope, WriteOutcome};
use crate::diagnostic::Diagnostic;
use crate::forge::Forge;
use crate::git::{Draft, FetchError, Person, PushError, Repository};
use crate::history::Edit;
use crate::model::CommitId;
use crate::snapshot::Snapshot;
use receipt::{Message, WriteQueue};

pub use receipt::DeliveryReceipt;

/// How writes are made.
#[derive(Clone, Debug)]
pub struct WriteSettings {
    /// What becomes of a write.
    pub mode: WriteMode,
    /// Who writes commits down.
    pub committer: Person,
    /// Lines at the end of every message, such as `Reviewed-by: nobody`.
    pub trailers: Vec<String>,
    /// How often a write is applied anew when somebody else was faster.
    pub retries: usize,
    /// Where pull requests are opened.
    pub forge: Option<Forge>,
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// It is refused: groups change by commits alone.
    #[default]
    Off,
    /// It is a commit on the branch.
    Commit,
    /// It is a commit on a branch of its own, for review.
    Propose,
}

/// A write and who wants it.
#[derive(Clone, Debug)]
pub struct WriteRequest {
    /// What is to be done.
    pub operation: Operation,
    /// What each of their grants allows to change; one must allow all of it.
    pub scopes: Vec<Scope>,
    /// Who they are; none where nobody has to say.
    pub actor: Option<String>,
    /// The request in one line, for the message: `POST /v1/groups`.
    pub line: String,
    /// The same for the same request of the same client.
    pub fingerprint: String,
}

/// A write that is in effect, or proposed.
#[derive(Clone, Debug)]
pub enum Written {
    /// It is at the remote and answers.
    Active {
        /// What answers.
        snapshot: Arc<Snapshot>,
        /// What the client is told.
        answer: WriteOutcome,
        /// When and how often the group was edited that the client is told of, if that is known.
        edit: Option<Edit>,
        /// Whether a commit was made; none is if everything was as wanted.
        changed: bool,
        /// Takes note when the client has heard; none where there was nothing to write.
        telling: Option<Arc<DeliveryReceipt>>,
    },
    /// It waits for review.
    Proposed {
        /// The branch.
        branch: String,
        /// The commit.
        commit: CommitId,
        /// The pull request.
        url: Option<String>,
    },
}

/// A write is not in effect.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    /// It cannot be done as asked.
    #[error("{}", .0.message)]
    Refused(Rejection),
    /// The groups would not be valid.
    #[error("the groups would not be valid")]
    Invalid(Vec<Diagnostic>),
    /// The state of the branch does not allow writes.
    #[error("{0}")]
    Blocked(String),
    /// Others were faster too often.
    #[error("others changed the branch meanwhile, {0} times in a row")]
    Conflict(usize),
    /// The remote does not take it.
    #[error("the remote refuses the change: {0}")]
    RemoteRefuses(String),
    /// The remote cannot be reached; nothing changed.
    #[error("nothing was changed: {0}")]
    Unreachable(FetchError),
    /// Whether it is at the remote nobody knows.
    #[error("whether the change is at the remote is not known, sending it again is safe: {0}")]
    Unknown(FetchError),
    /// It is on the branch, and an operator had another commit answer while it was pushed.
    #[error(
        "the change is on the branch as the commit {commit} and does not answer, since an operator \
         pinned {pinned} meanwhile: it answers after a resume"
    )]
    Kept {
        /// The commit of the change.
        commit: CommitId,
        /// The commit that answers.
        pinned: CommitId,
    },
    /// It could not be noted on disk before it was pushed, so it was not.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// No commit answers.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// Something failed here.
    #[error("{0}")]
    Internal(String),
}

/// Tells a client.
type Reply = Box<dyn FnOnce(Result<Written, WriteError>) + Send>;

struct Job {
    request: WriteRequest,
    reply: Reply,
}

/// Takes writes and makes commits of them.
pub struct Writer {
    controller: Arc<Controller>,
    settings: WriteSettings,
    desk: Arc<WriteQueue>,
    waiting: Mutex<Option<Receiver<Message>>>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// How many writes are pushed at once.
const BATCH: usize = 64;

/// Where a write is applied.
struct Tip {
    repository: Repository,
    branch: String,
    commit: CommitId,
    snapshot: Arc<Snapshot>,
}

/// A write that was applied and is not pushed yet.
struct Applied {
    job: Job,
    snapshot: Arc<Snapshot>,
    changeset: Changeset,
    /// The commit that its client is told of, unless nothing had to change.
    told_of: Option<CommitId>,
    edit: Option<Edit>,
}

impl Writer {
    /// Prepares to write; [`Writer::run`] does it.
    pub fn new(controller: Arc<Controller>, settings: WriteSettings) -> Self {
        let (sender, receiver) = channel();
        Self {
            controller,
            settings,
            desk: Arc::new(WriteQueue::new(sender)),
            waiting: Mutex::new(Some(receiver)),
        }
    }

    /// Queues a write; `reply` is called when it is decided.
    pub fn submit(
        &self,
        request: WriteRequest,
        reply: impl FnOnce(Result<Written, WriteError>) + Send + 'static,
    ) {
        let wanted = Message::Wanted(Box::new(Job { request, reply: Box::new(reply) }));
        if let Err(Message::Wanted(job)) = self.desk.leave(wanted) {
            (job.reply)(Err(WriteError::Blocked("the daemon is stopping".to_owned())));
        }
    }

    /// Has [`Writer::run`] end when what waits is done.
    pub fn stop(&self) {
        self.desk.close();
    }

    /// Makes commits of writes until told to stop. Blocking.
    pub fn run(&self) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(waiting) = waiting else { return };
        while let Ok(first) = waiting.recv() {
            let (mut jobs, mut told) = (Vec::new(), Vec::new());
            for message in std::iter::once(first).chain(waiting.try_iter().take(BATCH - 1)) {
                match message {
                    Message::Wanted(job) => jobs.push(*job),
                    Message::Told(commit) => told.push(commit),
                }
            }
            // Clients whose writes are dropped with a panic are told that these were not decided.
            supervised("writer", || {
                self.note_told(&told);
                match self.settings.mode {
                    _ if jobs.is_empty() => {}
                    WriteMode::Propose => jobs.into_iter().for_each(|job| self.propose(job)),
                    WriteMode::Off | WriteMode::Commit => self.write(jobs),
                }
            });
        }
    }

    /// Applies writes to the tip and pushes them, anew as often as others are faster.
    fn write(&self, mut jobs: Vec<Job>) {
        for _ in 0..=self.settings.retries {
            let tip = match self.tip() {
                Ok(tip) => tip,
                Err(error) => return fail_all(jobs, &error),
            };
            let since = Instant::now();
            let applied = self.apply_all(&tip, jobs);
            let Some(last) = applied.last().map(|it| Arc::clone(&it.snapshot)) else { return };
            if last.commit == tip.commit {
                return self.answer_all(applied, tip.commit);
            }
            if let Err(error) = self.note_pushing(&applied) {
                let jobs = applied.into_iter().map(|it| it.job).collect();
                return fail_all(jobs, &error.into());
            }
            match self.push(&tip, &applied, last.commit) {
                Ok(()) => {
                    return match self.controller.publish(&tip.repository, last, since) {
                        Ok(()) => self.answer_all(applied, tip.commit),
                        Err(kept) => tell_kept(applied, kept),
                    };
                }
                Err(PushError::Moved) => {
                    jobs = applied.into_iter().map(|it| it.job).collect();
                    self.controller.catch_up();
                }
                Err(PushError::Refused(_)) if applied.len() > 1 => {
                    // One of them may be what the remote does not want.
                    return applied.into_iter().for_each(|it| self.write(vec![it.job]));
                }
                Err(PushError::Refused(words)) => {
                    let jobs = applied.into_iter().map(|it| it.job).collect();
                    return fail_all(jobs, &WriteError::RemoteRefuses(words));
                }
                Err(PushError::Failed(error)) => {
                    let jobs = applied.into_iter().map(|it| it.job).collect();
                    return fail_all(jobs, &WriteError::Unreachable(error));
                }
                Err(PushError::Unknown(error)) => {
                    let jobs = applied.into_iter().map(|it| it.job).collect();
                    return fail_all(jobs, &WriteError::Unknown(error));
                }
            }
        }
        fail_all(jobs, &WriteError::Conflict(self.settings.retries + 1));
    }

    /// Returns where writes are applied: the newest commit of the branch, which must be valid.
    fn tip(&self) -> Result<Tip, WriteError> {
        let internal = |error: &dyn std::fmt::Display| WriteError::Internal(error.to_string());
        let controller = &self.controller;
        // After a restart an older commit answers at once, before the branch is looked at.
        if controller.state().last_contact.is_none() {
            controller.look(Trigger::Write).map_err(WriteError::Unreachable)?;
        }
        controller.wait_until_idle();
        let repository = controller.repository().map_err(|it| internal(&it))?;
        let (commit, pinned, held) = {
            let state = controller.state();
            (state.head(), state.pinned(), state.held().is_some())
        };
        if let Some(pinned) = pinned {
            let message = format!("an operator pinned the commit {pinned}: resume to write again");
            return Err(WriteError::Blocked(message));
        }
        if held {
            let message = "the branch waits for an operator: resume to write again";
            return Err(WriteError::Blocked(message.to_owned()));
        }
        let branch = controller.settings.branch.clone();
        let (branch, commit) = match &controller.settings.target {
            Target::Local(_) => {
                let commit =
                    repository.branch_head(branch.as_deref()).map_err(|it| internal(&it))?;
                (branch.or_else(|| repository.head_ref()), Some(commit))
            }
            Target::Remote(_) => (repository.head_ref(), commit),
        };
        let commit = commit.ok_or(WriteError::Lookup(LookupError::NoSnapshot))?;
        // What is proposed is a change to a commit that may answer.
        controller.admit(&repository, commit, Trust::Begin).map_err(LookupError::from)?;
        let full = |name: String| {
            if name.starts_with("refs/") { name } else { format!("refs/heads/{name}") }
        };
        let Some(branch) = branch.map(full).filter(|it| it.starts_with("refs/heads/")) else {
            let message = "what is followed is no branch, so nothing can be written to it";
            return Err(WriteError::Blocked(message.to_owned()));
        };
        match controller.outcome(&repository, commit).map_err(|it| internal(&it))? {
            Outcome::Valid(snapshot) => Ok(Tip { repository, branch, commit, snapshot }),
            Outcome::Rejected(rejected) => Err(LookupError::Rejected(rejected).into()),
        }
    }

    /// Applies writes, each to what the one before left; those that are refused are answered.
    fn apply_all(&self, tip: &Tip, jobs: Vec<Job>) -> Vec<Applied> {
        let mut applied: Vec<Applied> = Vec::new();
        for job in jobs {
            let base = Arc::clone(applied.last().map_or(&tip.snapshot, |it| &it.snapshot));
            let again = self.repeated(&tip.repository, &job.request, tip.commit, &applied);
            let known = again.as_ref().map(|it| it.commit);
            let done = match again {
                Some(write) => {
                    let (files, subject) = (BTreeMap::new(), String::new());
                    Ok((Arc::clone(&base), Changeset { files, subject, answer: write.answer }))
                }
                None => self.apply(&tip.repository, &base, &job.request),
            };
            match done {
                Ok((snapshot, changeset)) => {
                    let edit = self.edit(&tip.repository, &base, &snapshot, &changeset.answer);
                    let made = Some(snapshot.commit).filter(|it| *it != base.commit);
                    let told_of = known.or(made);
                    applied.push(Applied { job, snapshot, changeset, told_of, edit });
                }
                Err(error) => (job.reply)(Err(error)),
            }
        }
        applied
    }

    /// Returns when and how often a group was edited, with what was written just now.
    fn edit(
        &self,
        repository: &Repository,
        base: &Snapshot,
        written: &Snapshot,
        answer: &WriteOutcome,
    ) -> Option<Edit> {
        // The next write starts from here, whatever this one was about.
        let history = self.controller.edits_after(repository, base.commit, written.commit)?;
        history.edit(answer.group()?)
    }

    /// Applies a write to a commit: makes the next one, and builds it.
    fn apply(
        &self,
        repository: &Repository,
        base: &Arc<Snapshot>,
        request: &WriteRequest,
    ) -> Result<(Arc<Snapshot>, Changeset), WriteError> {
        let WriteRequest { operation, scopes, .. } = request;
        let changeset = self.controller.changeset(repository, base, operation, scopes)?;
        if changeset.files.is_empty() {
            return Ok((Arc::clone(base), changeset));
        }
        let internal = |error: &dyn std::fmt::Display| WriteError::Internal(error.to_string());
        let commit = self
            .commit(repository, base.commit, request, &changeset)
            .map_err(|error| internal(&error))?;
        match self.controller.outcome(repository, commit).map_err(|it| internal(&it))? {
            Outcome::Valid(snapshot) => Ok((snapshot, changeset)),
            Outcome::Rejected(rejected) => Err(WriteError::Invalid(rejected.diagnostics.clone())),
        }
    }

    fn commit(
        &self,
        repository: &Repository,
        parent: CommitId,
        request: &WriteRequest,
        changeset: &Changeset,
    ) -> Result<CommitId, crate::git::ReadError> {
        let files = changeset
            .files
            .iter()
            .map(|(path, text)| (self.controller.path_of(path), text.clone()))
            .collect();
        let committer = &self.settings.committer;
        repository.write_commit(&Draft {
            parent,
            files: &files,
            author: &message::author(request, committer),
            committer,
            message: &message::text(request, &changeset.subject, &self.settings.trailers),
        })
    }

    /// Tells each client of the commit that its write made or found; the one that answers has it in
    /// it.
    fn answer_all(&self, applied: Vec<Applied>, tip: CommitId) {
        let mut before = tip;
        for Applied { job, snapshot, changeset, edit, told_of } in applied {
            let changed = snapshot.commit != before;
            before = snapshot.commit;
            let answer = changeset.answer;
            let telling = told_of.map(|it| Arc::new(DeliveryReceipt::new(it, &self.desk)));
            (job.reply)(Ok(Written::Active { snapshot, answer, edit, changed, telling }));
        }
    }

    fn push(&self, tip: &Tip, applied: &[Applied], commit: CommitId) -> Result<(), PushError> {
        let _shown = self.controller.show_push();
        match &self.controller.settings.target {
            Target::Remote(mirror) => {
                let watched = self.controller.settings.branch.as_deref();
                mirror.push(&tip.branch, commit, Some(tip.commit), watched)
            }
            Target::Local(_) => {
                let mut files: Vec<String> = applied
                    .iter()
                    .flat_map(|it| {
                        it.changeset.files.keys().map(|path| self.controller.path_of(path))
                    })
                    .collect();
                files.sort_unstable();
                files.dedup();
                let files: Vec<&str> = files.iter().map(String::as_str).collect();
                let options = &self.controller.settings.transport;
                tip.repository.advance(&tip.branch, commit, Some(tip.commit), &files, options)
            }
        }
    }
}

/// Tells each client that its write is on the branch and does not answer. To send the same again is
/// safe: after a resume it is answered as the first time.
fn tell_kept(applied: Vec<Applied>, kept: Kept) {
    for Applied { job, snapshot, told_of, .. } in applied {
        let commit = told_of.unwrap_or(snapshot.commit);
        let error = match kept {
            Kept::Pinned(pinned) => WriteError::Kept { commit, pinned },
            Kept::Superseded(by) => WriteError::Blocked(format!(
                "the change was pushed as the commit {commit}, and the branch went to {by}, which \
                 lacks it, before it answered"
            )),
            Kept::Held | Kept::Stopping => WriteError::Blocked(format!(
                "the change is on the branch as the commit {commit} and does not answer yet"
            )),
        };
        (job.reply)(Err(error));
    }
}

fn fail_all(jobs: Vec<Job>, error: &WriteError) {
    for job in jobs {
        (job.reply)(Err(error.clone()));
    }
}

/// A push that the status shows.
struct PushShown<'c>(&'c Controller);

impl Drop for PushShown<'_> {
    fn drop(&mut self) {
        self.0.state().push_ended();
    }
}

impl Controller {
    /// Shows in the status how long a push takes, until the answer is dropped.
    fn show_push(&self) -> PushShown<'_> {
        self.state().push_began(Now::read());
        PushShown(self)
    }

    /// Makes a commit answer that was pushed just now.
    fn publish(
        &self,
        repository: &Repository,
        snapshot: Arc<Snapshot>,
        since: Instant,
    ) -> Result<(), Kept> {
        let commit = snapshot.commit;
        let lock = self.activating();
        match self.state().pushed(commit, repository, Now::read())? {
            Pushed::Answers => return Ok(()),
            Pushed::MayAnswer => {}
        }
        // Where commits must be signed, the daemon makes none.
        let admitted = Admitted { snapshot, signer: None };
        self.activate_within(&lock, repository, admitted, Cause::Written, since)
    }

    /// Has the branch looked at after somebody else moved it; what they pushed answers first.
    fn catch_up(&self) {
        if let Err(error) = self.look(Trigger::Write) {
            tracing::warn!(%error, "the branch could not be looked at");
        }
    }
}
