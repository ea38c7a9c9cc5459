//! Applying writes: the tip of the branch, and the next commit on it.

use std::sync::Arc;
use std::time::Duration;

use super::message;
use super::planner::WritePlanner;
use super::queue::QueuedWrite;
use super::request::{WriteError, WriteRequest, WriteSettings};
use crate::changeset::{Changeset, WriteOutcome};
use crate::git::{
    FetchError, FetchFailure, NewCommit, ObjectFault, OpenError, ReadError, Repository,
    ResolveError, RevisionError,
};
use crate::model::CommitId;
use crate::reconcile::clock::Now;
use crate::reconcile::errors::{LookupError, StorageError};
use crate::reconcile::fetcher::Fetcher;
use crate::reconcile::outcome::{BuildError, Outcome};
use crate::reconcile::shared_state::SharedState;
use crate::reconcile::snapshot_store::{SnapshotStore, VerifiedSnapshot};
use crate::reconcile::source::{Source, WriteBranch};
use crate::reconcile::state::SourceKind;
use crate::reconcile::status::{FailedCommit, Reason};
use crate::reconcile::trigger::Trigger;
use crate::reconcile::verifier::{Trust, VerifiedCommit, Verifier};
use crate::snapshot::Snapshot;

/// A remote that was fetched less long ago is not asked again because a commit is refused.
const JUST_NOW: Duration = Duration::from_secs(1);

/// The newest commit of the branch, which writes are applied to.
pub(super) struct Tip {
    pub(super) repository: Repository,
    /// The full name of the branch.
    pub(super) branch: String,
    pub(super) commit: CommitId,
    pub(super) snapshot: Arc<Snapshot>,
}

/// Makes commits of writes.
pub(super) struct Applier {
    pub(super) source: Arc<Source>,
    pub(super) state: Arc<SharedState>,
    pub(super) fetcher: Arc<Fetcher>,
    pub(super) verifier: Arc<Verifier>,
    pub(super) store: Arc<SnapshotStore>,
    pub(super) planner: Arc<WritePlanner>,
    pub(super) settings: Arc<WriteSettings>,
}

impl Applier {
    /// Returns the newest commit of the branch, which must be valid. Where the one that was fetched last is not, the remote
    /// may have another by now.
    pub(super) fn tip(&self) -> Result<Tip, WriteError> {
        match self.with_damage_mended(|| self.tip_once()) {
            Err(refused @ WriteError::Lookup(_)) if self.may_be_outdated() => {
                match self.fetcher.fetch(Trigger::Write) {
                    Ok(()) => self.with_damage_mended(|| self.tip_once()),
                    // It stays refused by what is known.
                    Err(_) => Err(refused),
                }
            }
            tip => tip,
        }
    }

    /// Returns whether a remote was not asked just now.
    fn may_be_outdated(&self) -> bool {
        let (last, failures) = {
            let state = self.state.lock();
            (state.last_contact, state.failures)
        };
        // One that did not answer the last time is not waited for by one write after another.
        self.source.kind() == SourceKind::Remote
            && failures == 0
            && last.is_some_and(|it| Now::read().age_of(it) >= JUST_NOW)
    }

    /// Returns whether a tip is the newest commit of the branch. A remote is asked, and what it has is fetched: only a
    /// push finds out otherwise that others moved the branch since the last fetch. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the remote cannot be asked, or shows a commit behind the tip.
    pub(super) fn is_newest(&self, tip: &Tip) -> Result<bool, WriteError> {
        match self.source.kind() {
            // The tip was read in the repository itself.
            SourceKind::Local => Ok(true),
            SourceKind::Remote => {
                self.fetcher.fetch_on_top_of(tip.commit).map_err(WriteError::unfetched)?;
                Ok(self.state.lock().head() == Some(tip.commit))
            }
        }
    }

    /// Returns whether a remote still shows a tip that a push found moved: it lags, or the branch went back.
    pub(super) fn shows_no_move(&self, tip: &Tip) -> bool {
        self.source.kind() == SourceKind::Remote && self.state.lock().head() == Some(tip.commit)
    }

    /// Returns the refusal of a write that the live snapshot does not give its client the right to.
    pub(super) fn denied(&self, request: &WriteRequest) -> Option<WriteError> {
        if let Err(refusal) = request.check_rights_held() {
            return Some(refusal);
        }
        let live = self.store.live()?;
        WritePlanner::check_rights(&live, request).err()
    }

    /// The same of a write that was refused for a right on another commit, also where that is known only when it is computed.
    pub(super) fn denied_again(&self, write: &QueuedWrite) -> Option<WriteError> {
        write.refusal.as_ref().filter(|it| it.is_of_rights())?;
        self.planner.check_all_rights(&*self.store.live()?, &write.request).err()
    }

    /// The refusal of [`Self::denied`] where no commit that is known to be newer changes it: the remote need not be asked.
    /// What is read in place is newer than what is live, as is a head that is being built or not fetched since a restart.
    pub(super) fn denied_early(&self, request: &WriteRequest) -> Option<WriteError> {
        let is_settled = self.source.kind() == SourceKind::Remote && {
            let state = self.state.lock();
            let head = state.head();
            state.last_contact.is_some() && head.is_some() && head == state.live()
        };
        if !is_settled {
            return None;
        }
        self.denied(request).filter(|it| !it.depends_on_groups())
    }

    /// Tries once more where objects are damaged, after they were fetched again.
    fn with_damage_mended<T>(
        &self,
        once: impl Fn() -> Result<T, WriteError>,
    ) -> Result<T, WriteError> {
        match once() {
            Err(error) if error.is_of_damage() => {
                // The fetch after the error fetches everything again.
                self.fetcher.fetch(Trigger::Write).map_err(|_| error)?;
                once()
            }
            done => done,
        }
    }

    fn tip_once(&self) -> Result<Tip, WriteError> {
        // After a restart an older commit is live at once, before the branch is fetched; and a remote that lagged may have
        // caught up.
        let is_fetched = {
            let state = self.state.lock();
            state.last_contact.is_some() && !state.is_behind()
        };
        if !is_fetched {
            self.fetcher.fetch(Trigger::Write).map_err(WriteError::unfetched)?;
        }
        let (repository, WriteBranch { name, head }) = self.settled_branch()?;
        let why = || LookupError::NoSnapshot(self.state.lock().why_no_snapshot());
        let commit = head.ok_or_else(|| WriteError::Lookup(why()))?;
        let verified = self.verify(&repository, commit)?;
        let Some(branch) = name else {
            let message = "what is followed is not a branch, so it cannot be written to";
            return Err(WriteError::Blocked(message.to_owned()));
        };
        let outcome = self.store.build(&repository, &verified).map_err(|it| self.unbuilt(&it))?;
        let valid = outcome.into_result().map_err(LookupError::from)?;
        let snapshot = Arc::clone(valid.snapshot());
        Ok(Tip { repository, branch, commit, snapshot })
    }

    /// Returns the error of a repository that cannot be opened: a mirror is fetched again.
    fn unopened(&self, error: &OpenError) -> WriteError {
        match self.source.kind() {
            SourceKind::Remote => WriteError::Unreachable(self.source.open_failed(error)),
            SourceKind::Local => {
                let (what, reason) = ("the repository", error.to_string());
                WriteError::Storage(StorageError { what, reason })
            }
        }
    }

    /// Returns the branch when what was fetched of it last is decided about: live, or not valid.
    fn settled_branch(&self) -> Result<(Repository, WriteBranch), WriteError> {
        // To catch up with a branch that others moved before the write came does not count as a retry.
        for _ in 0..=self.settings.retries.saturating_add(1) {
            let observed = self.observed_when_idle()?;
            let repository = self.source.repository();
            let repository = repository.map_err(|it| self.unopened(&it))?;
            let branch = self.source.write_branch(&repository, observed);
            let branch = branch.map_err(|error| self.without_branch(&repository, &error))?;
            if branch.head == observed {
                return Ok((repository, branch));
            }
            // A repository that is read in place has gone on: the policies decide about that first.
            self.fetcher.fetch(Trigger::Write).map_err(WriteError::unfetched)?;
        }
        Err(WriteError::Conflict(self.settings.retries + 1))
    }

    /// Returns the error of a write to a branch that the repository does not have, or whose commit cannot be read.
    fn without_branch(&self, repository: &Repository, error: &ResolveError) -> WriteError {
        match error {
            ResolveError::Unknown(RevisionError { revision, .. }) => {
                let branch = Some(&**revision).filter(|it| *it != "HEAD");
                if let Some(damage) = repository.damage_at(branch) {
                    return self.planner.unreadable(&damage);
                }
                WriteError::Unreachable(FetchError {
                    failure: FetchFailure::RefNotFound,
                    message: repository.why_missing(branch),
                })
            }
            ResolveError::Unreadable(error) => self.planner.unreadable(error),
        }
    }

    /// Returns where the last fetch found the branch when no candidate is being built, unless an operator has to
    /// resume before writes. Blocking.
    fn observed_when_idle(&self) -> Result<Option<CommitId>, WriteError> {
        // In one step: a head that is fetched after the wait would be a candidate again.
        let state = self.state.wait_until_idle();
        if let Some(pinned) = state.pinned() {
            let message = format!("an operator pinned the commit {pinned}: resume to write again");
            return Err(WriteError::Blocked(message));
        }
        if state.is_behind() {
            return Err(WriteError::lag("the remote shows a commit behind the live one"));
        }
        if state.held().is_some() {
            let message = "the branch waits for an operator: resume to write again";
            return Err(WriteError::Blocked(message.to_owned()));
        }
        // It may be one to hold, also where it can be read by now: the next fetch has it built again.
        state.unread().map_or(Ok(state.head()), |it| Err(self.unread(it)))
    }

    /// Returns the error of a write to a branch whose head could not be read.
    fn unread(&self, head: &FailedCommit) -> WriteError {
        let message = format!("the commit {} could not be read: {}", head.commit, head.in_short());
        match self.source.kind() {
            SourceKind::Remote => WriteError::Unreachable(FetchError {
                failure: FetchFailure::CorruptObjects,
                message,
            }),
            SourceKind::Local => WriteError::Lookup(LookupError::Unreadable(message)),
        }
    }

    fn verify(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<VerifiedCommit, WriteError> {
        let verified = self.verifier.verify(repository, commit, Trust::Begin);
        verified.map_err(|fault| match fault.read_error() {
            Some(error) => WriteError::of_object(error, self.source.kind()),
            None => LookupError::from(fault).into(),
        })
    }

    fn unbuilt(&self, error: &BuildError) -> WriteError {
        WriteError::of_build(error, self.source.kind())
    }

    /// Applies a write to a commit: makes the next one, and builds it.
    pub(super) fn apply(
        &self,
        repository: &Repository,
        base: &Arc<Snapshot>,
        request: &WriteRequest,
    ) -> Result<(Arc<Snapshot>, Changeset), WriteError> {
        self.with_damage_mended(|| self.apply_once(repository, base, request))
    }

    fn apply_once(
        &self,
        repository: &Repository,
        base: &Arc<Snapshot>,
        request: &WriteRequest,
    ) -> Result<(Arc<Snapshot>, Changeset), WriteError> {
        let WriteRequest { operation, grants, .. } = request;
        let changeset = self.planner.plan(repository, base, operation, grants)?;
        if changeset.files.is_empty() {
            return Ok((Arc::clone(base), changeset));
        }
        let commit = self
            .commit(repository, base.commit, request, &changeset)
            .map_err(|it| self.uncommitted(&it))?;
        let outcome = self.store.build_written(repository, commit);
        match outcome.map_err(|it| self.unbuilt(&it))? {
            Outcome::Valid(snapshot) => Ok((snapshot, changeset)),
            Outcome::Rejected(rejected) => Err(WriteError::Invalid(rejected.diagnostics.clone())),
        }
    }

    /// Returns whether everything is at a snapshot as a write left it that was made before.
    pub(super) fn is_in_effect(
        &self,
        tip: &Tip,
        base: &Snapshot,
        request: &WriteRequest,
        outcome: &WriteOutcome,
    ) -> Result<bool, WriteError> {
        self.planner.is_in_effect(&tip.repository, base, request, outcome)
    }

    /// Returns the error of a write whose commit cannot be written, and notes it for the status.
    fn uncommitted(&self, error: &ReadError) -> WriteError {
        let reason = match error.fault() {
            ObjectFault::DiskFull => Reason::DiskFull,
            ObjectFault::System => Reason::WriteFailed,
            ObjectFault::Damaged | ObjectFault::Other => return self.planner.unreadable(error),
        };
        tracing::error!(%error, "a write is not committed");
        self.state.lock().note_unwritten(Some((reason, error.to_string())));
        WriteError::of_object(error, self.source.kind())
    }

    fn commit(
        &self,
        repository: &Repository,
        parent: CommitId,
        request: &WriteRequest,
        changeset: &Changeset,
    ) -> Result<CommitId, ReadError> {
        let files = changeset
            .files
            .iter()
            .map(|(path, text)| (self.source.path_of(path), text.clone()))
            .collect();
        let committer = &self.settings.committer;
        repository.write_commit(&NewCommit {
            parent,
            files: &files,
            author: &message::author(changeset.actor.as_deref(), committer),
            committer,
            message: &message::text(request, changeset, &self.settings.trailers),
        })
    }

    /// Returns the snapshot of a commit that writes made, if it may be live: it is about to be pushed.
    pub(super) fn admit(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<VerifiedSnapshot, WriteError> {
        let verified = self.verify(repository, commit)?;
        let outcome = self.store.build(repository, &verified).map_err(|it| self.unbuilt(&it))?;
        Ok(outcome.into_result().map_err(LookupError::from)?)
    }
}
