//! The thread that makes commits of writes, pushes them and makes them live.
#![expect(clippy::disallowed_methods, reason = "activations are measured by the clock")]

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use parking_lot::Mutex;

use super::applier::{Applier, Tip};
use super::batch::{AppliedWrite, DecidedWrites};
use super::idempotency::Idempotency;
use super::opener::PullRequestOpener;
use super::planner::WritePlanner;
use super::proposer::Proposer;
use super::queue::{Message, QueuedWrite, WriteQueue};
use super::receipt::Deliveries;
use super::request::{WriteError, WriteMode, WriteRequest, WriteSettings, Written};
use crate::changeset::{Changeset, WriteOutcome};
use crate::git::{PushError, Repository};
use crate::history::Edit;
use crate::model::CommitId;
use crate::priority;
use crate::reconcile::activator::Activator;
use crate::reconcile::ancestry::{decide_by_history, read_ancestry};
use crate::reconcile::clock::Now;
use crate::reconcile::edit_history::EditHistory;
use crate::reconcile::fetcher::Fetcher;
use crate::reconcile::journal::PushedWrite;
use crate::reconcile::recorder::Recorder;
use crate::reconcile::shared_state::SharedState;
use crate::reconcile::snapshot_store::{SnapshotStore, VerifiedSnapshot};
use crate::reconcile::source::Source;
use crate::reconcile::state::{Cause, KnownAncestry, Pushed, Withheld};
use crate::reconcile::supervise::supervised;
use crate::reconcile::trigger::Trigger;
use crate::reconcile::verifier::Verifier;
use crate::snapshot::Snapshot;

/// The parts of the loop that a writer uses.
pub(in crate::reconcile) struct WriterParts {
    pub(in crate::reconcile) source: Arc<Source>,
    pub(in crate::reconcile) state: Arc<SharedState>,
    pub(in crate::reconcile) recorder: Arc<Recorder>,
    pub(in crate::reconcile) fetcher: Arc<Fetcher>,
    pub(in crate::reconcile) verifier: Arc<Verifier>,
    pub(in crate::reconcile) store: Arc<SnapshotStore>,
    pub(in crate::reconcile) planner: Arc<WritePlanner>,
    pub(in crate::reconcile) activator: Arc<Activator>,
    pub(in crate::reconcile) edits: Arc<EditHistory>,
}

/// Takes writes and makes commits of them.
pub struct Writer {
    settings: Arc<WriteSettings>,
    source: Arc<Source>,
    state: Arc<SharedState>,
    fetcher: Arc<Fetcher>,
    activator: Arc<Activator>,
    edits: Arc<EditHistory>,
    applier: Arc<Applier>,
    proposer: Proposer,
    idempotency: Idempotency,
    queue: WriteQueue,
    deliveries: Arc<Deliveries>,
    receiver: Mutex<Option<Receiver<Message>>>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// How many writes are pushed at once.
const BATCH: usize = 64;

/// Why applied writes are not live.
enum Failure {
    /// Nothing had to be pushed, and others moved the branch; where it went is fetched.
    Stale,
    /// They were not pushed.
    Unpushed(WriteError),
    /// The push failed, or its end is not known.
    Push(PushError),
    /// They are on the branch.
    Withheld(Withheld),
}

impl Writer {
    /// Prepares to write; [`Writer::run`] does it.
    pub(in crate::reconcile) fn new(settings: WriteSettings, parts: WriterParts) -> Self {
        let settings = Arc::new(settings);
        let WriterParts {
            source,
            state,
            recorder,
            fetcher,
            verifier,
            store,
            planner,
            activator,
            edits,
        } = parts;
        let (queue, receiver) = WriteQueue::new();
        let deliveries = Arc::new(queue.deliveries());
        let applier = Arc::new(Applier {
            source: Arc::clone(&source),
            state: Arc::clone(&state),
            fetcher: Arc::clone(&fetcher),
            verifier,
            store,
            planner,
            settings: Arc::clone(&settings),
        });
        let proposer = Proposer {
            applier: Arc::clone(&applier),
            source: Arc::clone(&source),
            state: Arc::clone(&state),
            edits: Arc::clone(&edits),
            opener: settings.forge.clone().map(PullRequestOpener::new).map(Arc::new),
            settings: Arc::clone(&settings),
        };
        let idempotency = Idempotency { recorder, deliveries: Arc::clone(&deliveries) };
        Self {
            settings,
            source,
            state,
            fetcher,
            activator,
            edits,
            applier,
            proposer,
            idempotency,
            queue,
            deliveries,
            receiver: Mutex::new(Some(receiver)),
        }
    }

    /// Queues a write; `reply` is called when it is decided.
    pub fn submit(
        &self,
        request: WriteRequest,
        reply: impl FnOnce(Result<Written, WriteError>) + Send + 'static,
    ) {
        let write = QueuedWrite { request, refusal: None, reply: Box::new(reply) };
        let write = Message::Write(Box::new(write));
        if let Err(Message::Write(write)) = self.queue.send(write) {
            (write.reply)(Err(WriteError::Blocked("the daemon is stopping".to_owned())));
        }
    }

    /// Ends [`Writer::run`] when the queued writes are done.
    pub fn stop(&self) {
        self.queue.close();
    }

    /// Makes commits of writes until it is stopped. Blocking.
    pub fn run(&self) {
        let Some(receiver) = self.receiver.lock().take() else { return };
        let opener = self.proposer.opener.as_ref();
        opener.inspect(|it| it.spawn());
        self.take_writes(&receiver);
        opener.inspect(|it| it.stop());
    }

    fn take_writes(&self, receiver: &Receiver<Message>) {
        priority::yield_to_requests();
        while let Ok(first) = receiver.recv() {
            let messages: Vec<_> =
                std::iter::once(first).chain(receiver.try_iter().take(BATCH - 1)).collect();
            // A panic drops the writes, and their clients get the error for writes that were not decided.
            supervised("writer", || self.handle(messages));
        }
    }

    /// Handles the messages that wait, in the thread of the caller.
    #[cfg(test)]
    pub(in crate::reconcile) fn run_waiting(&self) {
        let messages = match self.receiver.lock().as_ref() {
            Some(receiver) => receiver.try_iter().collect(),
            None => Vec::new(),
        };
        self.handle(messages);
    }

    fn handle(&self, messages: Vec<Message>) {
        let (mut writes, mut delivered) = (Vec::new(), Vec::new());
        for message in messages {
            match message {
                Message::Write(write) => writes.push(*write),
                Message::Delivered(commit) => delivered.push(commit),
            }
        }
        self.idempotency.note_delivered(&delivered);
        match self.settings.mode {
            _ if writes.is_empty() => {}
            WriteMode::Propose => self.proposer.propose_all(writes),
            WriteMode::Off | WriteMode::Commit => {
                self.write(refuse(writes, |it| self.applier.denied_early(&it.request)));
            }
        }
    }

    /// Applies writes to the tip and pushes them, again as often as other pushes come first.
    fn write(&self, mut writes: Vec<QueuedWrite>) {
        // Whether the branch was fetched since the writes came.
        let mut is_fetched = false;
        let mut lags = false;
        for _ in 0..=self.settings.retries {
            let tip = match self.applier.tip() {
                Ok(tip) => tip,
                Err(error) => return self.fail(writes, &error),
            };
            let since = Instant::now();
            let batch = self.apply_all(&tip, writes);
            if batch.is_empty() {
                return;
            }
            match self.publish(&tip, &batch, is_fetched, since) {
                Ok(()) => return batch.answer(tip.commit, &self.deliveries),
                Err(Failure::Withheld(withheld)) => return batch.answer_withheld(withheld),
                Err(Failure::Stale) => {
                    writes = batch.into_queued();
                    is_fetched = true;
                }
                Err(Failure::Push(PushError::Moved)) => {
                    writes = batch.into_queued();
                    is_fetched = self.catch_up();
                    lags = is_fetched && self.applier.shows_no_move(&tip);
                }
                Err(Failure::Push(PushError::Rejected(_))) if batch.len() > 1 => {
                    // The remote may refuse only one of them.
                    return batch.into_queued().into_iter().for_each(|it| self.write(vec![it]));
                }
                Err(Failure::Push(error)) => return batch.fail(&error.into()),
                Err(Failure::Unpushed(error)) => return batch.fail(&error),
            }
        }
        // Where the remote shows no move, it is not known that others came first.
        let error = match lags {
            true => WriteError::lag("the remote shows an older commit than it has"),
            false => WriteError::Conflict(self.settings.retries + 1),
        };
        self.fail(writes, &error);
    }

    /// Answers writes that could not be decided on the newest commit. A client without rights does not learn why; but a
    /// write that is sent again may have removed its group itself, and gets the answer of the first one later.
    fn fail(&self, writes: Vec<QueuedWrite>, error: &WriteError) {
        let refused = |it: &QueuedWrite| {
            let denied = self.applier.denied(&it.request);
            let denied = denied.or_else(|| self.applier.denied_again(it));
            denied.filter(|_| !self.idempotency.is_unanswered(&it.request))
        };
        for write in refuse(writes, refused) {
            (write.reply)(Err(error.clone()));
        }
    }

    /// Applies writes, each to what the one before left.
    fn apply_all(&self, tip: &Tip, writes: Vec<QueuedWrite>) -> DecidedWrites {
        let mut batch = DecidedWrites::default();
        for queued in writes {
            let base = Arc::clone(batch.last().unwrap_or(&tip.snapshot));
            let is_taken = |commit| batch.answers_with(commit);
            let held = queued.request.check_rights_held();
            let repeated = held.and_then(|()| self.repeated(tip, &base, &queued.request, is_taken));
            let done = repeated.and_then(|repeated| match repeated {
                Some(write) => {
                    let changeset = Changeset::unchanged(write.answer);
                    Ok((Arc::clone(&base), changeset, Some(write.commit)))
                }
                None => {
                    let applied = self.applier.apply(&tip.repository, &base, &queued.request);
                    applied.map(|(snapshot, changeset)| (snapshot, changeset, None))
                }
            });
            match done {
                Ok((snapshot, changeset, known)) => {
                    let edit = self.edit(&tip.repository, &base, &snapshot, &changeset.answer);
                    let made = Some(snapshot.commit).filter(|it| *it != base.commit);
                    let answered_with = known.or(made);
                    let applied = AppliedWrite { snapshot, changeset, answered_with, edit };
                    batch.push_applied(queued, applied);
                }
                Err(error) => batch.push_refused(queued, error),
            }
        }
        batch
    }

    /// Returns the write that a request repeats, if that is unanswered and in effect.
    fn repeated(
        &self,
        tip: &Tip,
        base: &Snapshot,
        request: &WriteRequest,
        is_taken: impl Fn(CommitId) -> bool,
    ) -> Result<Option<PushedWrite>, WriteError> {
        let write = self.idempotency.repeated(&tip.repository, request, tip.commit, is_taken);
        let write = write.map_err(|it| self.applier.planner.unreadable(&it))?;
        let Some(write) = write else { return Ok(None) };
        let is_in_effect = self.applier.is_in_effect(tip, base, request, &write.answer)?;
        Ok(is_in_effect.then_some(write))
    }

    /// Returns when and how often a group was edited, the write included.
    fn edit(
        &self,
        repository: &Repository,
        base: &Snapshot,
        written: &Snapshot,
        answer: &WriteOutcome,
    ) -> Option<Edit> {
        // The next write starts from here, whatever this one was about.
        let history = self.edits.after(repository, base.commit, written.commit)?;
        history.edit(answer.group()?)
    }

    /// Pushes the last commit of some writes and makes it live. Where none made a commit, what they were decided on must
    /// be the newest commit of the branch, which a push finds out otherwise.
    fn publish(
        &self,
        tip: &Tip,
        batch: &DecidedWrites,
        is_fetched: bool,
        since: Instant,
    ) -> Result<(), Failure> {
        let last = batch.last().map(|it| it.commit);
        let is_pushed = last.is_some_and(|it| it != tip.commit);
        if !is_pushed && !is_fetched && !self.applier.is_newest(tip).map_err(Failure::Unpushed)? {
            return Err(Failure::Stale);
        }
        let Some(last) = last else { return Ok(()) };
        let snapshot = self.applier.admit(&tip.repository, last).map_err(Failure::Unpushed)?;
        self.source.settle(&tip.repository, &tip.branch, tip.commit).map_err(Failure::Push)?;
        if is_pushed {
            self.push(tip, batch, last)?;
        }
        self.activate_pushed(&tip.repository, snapshot, since).map_err(Failure::Withheld)
    }

    /// Pushes the last of some commits.
    fn push(&self, tip: &Tip, batch: &DecidedWrites, last: CommitId) -> Result<(), Failure> {
        let writes = batch.pushing();
        let commits: Vec<CommitId> = writes.iter().map(|it| it.commit).collect();
        let recorded = self.idempotency.record_pushing(writes);
        recorded.map_err(|it| Failure::Unpushed(it.into()))?;
        let shown = self.state.show_push();
        let pushed =
            self.source.push(&tip.repository, &tip.branch, last, tip.commit, batch.files());
        drop(shown);
        for commit in commits {
            self.applier.store.note_push(commit, pushed.as_ref().copied());
        }
        pushed.inspect_err(|it| self.state.note_push_failed(it)).map_err(Failure::Push)
    }

    /// Makes a commit live that the branch is at.
    fn activate_pushed(
        &self,
        repository: &Repository,
        snapshot: VerifiedSnapshot,
        since: Instant,
    ) -> Result<(), Withheld> {
        let commit = snapshot.commit();
        let read = |pair| read_ancestry(repository, pair);
        let is_wanted = || !self.state.is_stopping();
        let known = &mut KnownAncestry::default();
        let (activation, pushed) = decide_by_history(known, read, is_wanted, |ancestry| {
            let activation = self.activator.begin();
            (activation, self.state.lock().pushed(commit, ancestry, Now::read()))
        });
        match pushed {
            Err(Withheld::Unread) if self.state.is_stopping() => return Err(Withheld::Stopping),
            Err(Withheld::Unread) => {
                self.state.request_fetch(Trigger::Write);
                return Err(Withheld::Unread);
            }
            Err(withheld) => return Err(withheld),
            Ok(Pushed::IsLive) => return Ok(()),
            Ok(Pushed::MayActivate) => {}
        }
        let admitted = activation.admit(snapshot).inspect_err(|_| {
            self.state.lock().verify_pushed_again(commit, Now::read());
            self.state.notify();
        })?;
        activation.activate(repository, admitted, Cause::Written, since)
    }

    /// Fetches the branch after another push moved it; what it brought is made live first. Returns whether it was
    /// fetched.
    fn catch_up(&self) -> bool {
        let fetched = self.fetcher.fetch(Trigger::Write);
        fetched.inspect_err(|error| tracing::warn!(%error, "fetch failed")).is_ok()
    }
}

/// Answers the writes that are refused, and returns the others.
fn refuse(
    writes: Vec<QueuedWrite>,
    refusal: impl Fn(&QueuedWrite) -> Option<WriteError>,
) -> Vec<QueuedWrite> {
    let mut others = Vec::new();
    for write in writes {
        match refusal(&write) {
            Some(error) => (write.reply)(Err(error)),
            None => others.push(write),
        }
    }
    others
}
