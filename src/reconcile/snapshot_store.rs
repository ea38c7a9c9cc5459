//! The store of snapshots: builds them, one at a time, and keeps those used last.

use std::sync::Arc;

use parking_lot::Mutex;

use super::blame::{Blame, BlameCache};
use super::build::{Build, Built};
#[cfg(test)]
use super::build_queue::BuildSlot;
use super::build_queue::{BuildQueue, Priority};
use super::live::LiveSnapshots;
use super::outcome::{BuildError, Outcome};
use super::reading_cache::ReadingCache;
use super::shared_state::SharedState;
use super::snapshot_cache::SnapshotCache;
use super::verifier::VerifiedCommit;
use crate::git::{KeyFiles, ObjectFault, PushError, ReadError, Repository, ResolveError, Signer};
use crate::model::{Budget, CommitId};
use crate::snapshot::Snapshot;

/// The snapshot of a commit whose signatures are verified: it may be made live. Only
/// [`SnapshotStore::build`] makes one, from a [`VerifiedCommit`].
#[derive(Clone, Debug)]
pub(super) struct VerifiedSnapshot {
    snapshot: Arc<Snapshot>,
    signer: Option<Signer>,
    keys: KeyFiles,
}

impl VerifiedSnapshot {
    pub(super) fn commit(&self) -> CommitId {
        self.snapshot.commit
    }

    /// Returns the snapshot, and who signed its commit where that is demanded.
    pub(super) fn into_parts(self) -> (Arc<Snapshot>, Option<Signer>) {
        (self.snapshot, self.signer)
    }

    pub(super) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// Returns what the files of keys contained by which its commit was verified.
    pub(super) fn keys(&self) -> &KeyFiles {
        &self.keys
    }
}

/// Builds snapshots and keeps them.
#[derive(Debug)]
pub(super) struct SnapshotStore {
    /// The directory of the groups in the repository.
    path: String,
    budget: Budget,
    /// How many bytes the snapshots of other commits may take beside the live one.
    cache_bytes: u64,
    live: Arc<LiveSnapshots>,
    state: Arc<SharedState>,
    cache: Mutex<SnapshotCache>,
    readings: ReadingCache,
    queue: BuildQueue,
    blames: BlameCache,
}

impl SnapshotStore {
    pub(super) fn new(
        path: String,
        budget: Budget,
        cache_bytes: u64,
        live: Arc<LiveSnapshots>,
        state: Arc<SharedState>,
    ) -> Self {
        Self {
            path,
            budget,
            cache_bytes,
            live,
            state,
            cache: Mutex::default(),
            readings: ReadingCache::default(),
            queue: BuildQueue::default(),
            blames: BlameCache::default(),
        }
    }

    /// Returns the live snapshot.
    pub(super) fn live(&self) -> Option<Arc<Snapshot>> {
        self.live.stable().map(|it| Arc::clone(it.snapshot()))
    }

    /// Returns the outcome of a commit that may become live, building it before anything that is only
    /// read. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit cannot be read.
    pub(super) fn build(
        &self,
        repository: &Repository,
        commit: &VerifiedCommit,
    ) -> Result<Outcome<VerifiedSnapshot>, BuildError> {
        self.build_while(repository, commit, &|| true)
    }

    /// The same, as long as the outcome is wanted.
    pub(super) fn build_while(
        &self,
        repository: &Repository,
        commit: &VerifiedCommit,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Outcome<VerifiedSnapshot>, BuildError> {
        let outcome = self.decide(repository, commit.id(), is_wanted)?;
        let (signer, keys) = (commit.signer().cloned(), commit.keys().clone());
        Ok(outcome.map(|snapshot| VerifiedSnapshot { snapshot, signer, keys }))
    }

    /// Returns the outcome of a commit that a write made and that is not on the branch yet. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit cannot be read.
    pub(super) fn build_written(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<Outcome, BuildError> {
        let outcome = self.decide(repository, commit, &|| true)?;
        self.cache.lock().note_unpushed(commit, true);
        Ok(outcome)
    }

    fn decide(
        &self,
        repository: &Repository,
        commit: CommitId,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Outcome, BuildError> {
        if let Some(known) = self.cached(commit) {
            return Ok(known);
        }
        let _slot = self.queue.take(Priority::Decides);
        self.build_now(repository, commit, self.budget, is_wanted)
    }

    /// Returns the outcome of a commit that is only read, building it when nothing else is built.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit cannot be read, or too many wait for that.
    pub(super) fn read(
        &self,
        repository: &Repository,
        commit: &VerifiedCommit,
    ) -> Result<Outcome, BuildError> {
        self.read_unverified(repository, commit.id(), Priority::Reads)
    }

    /// The same for a commit that must not answer agents, whatever its signatures. A commit that the
    /// branch does not have, such as the head of a pull request, gets a tenth of the budget beyond what
    /// the live one costs. Blocking.
    pub(super) fn read_unverified(
        &self,
        repository: &Repository,
        commit: CommitId,
        priority: Priority,
    ) -> Result<Outcome, BuildError> {
        /// How often a build gives way to those that decide.
        const TRIES: usize = 8;
        if let Some(known) = self.cached(commit) {
            return Ok(known);
        }
        let is_wanted = || !self.queue.is_awaited();
        let is_followed = self.is_followed(repository, commit);
        for _ in 0..TRIES {
            let slot = self.queue.take(priority).ok_or(BuildError::Busy)?;
            let built = self
                .budget_to_read(repository, is_followed)
                .and_then(|budget| self.build_now(repository, commit, budget, &is_wanted));
            drop(slot);
            match built {
                Err(BuildError::Cancelled(_)) => {}
                done => return done,
            }
        }
        Err(BuildError::Busy)
    }

    /// Returns what the head of a pull request may cost. Blocking.
    pub(super) fn budget_of_head(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<Budget, BuildError> {
        let is_followed = self.is_followed(repository, commit);
        let _slot = self.queue.take(Priority::Reports);
        self.budget_to_read(repository, is_followed)
    }

    /// Prepares the blame of a node's answer at a commit. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if too many requests wait for other commits, or the commit cannot be read.
    pub(super) fn blame<'b>(
        &'b self,
        repository: &'b Repository,
        head: CommitId,
        is_wanted: &'b (dyn Fn() -> bool + Sync),
    ) -> Result<Blame<'b>, BuildError> {
        let is_followed = self.is_followed(repository, head);
        let slot = self.queue.take(Priority::Reads).ok_or(BuildError::Busy)?;
        let budget = self.budget_to_read(repository, is_followed)?;
        drop(slot);
        let blame = Blame::new(repository, &self.path, budget, is_wanted)
            .beside(&self.queue, &self.readings)
            .with_built(self.cached_build(head).map(|it| (head, it.checked)));
        // What is too large for a smaller budget may be valid once the branch has it.
        Ok(if budget == self.budget { blame.with_cache(&self.blames) } else { blame })
    }

    /// Returns whether the branch or the live commit contains a commit. Called without a build slot: nothing stops a walk
    /// of a long history, and what decides waits for the slot.
    fn is_followed(&self, repository: &Repository, commit: CommitId) -> bool {
        #[cfg(test)]
        assert!(!BuildSlot::is_held_here());
        let live = self.live.commit();
        let head = self.state.lock().head();
        let is_part = |of: CommitId| repository.is_ancestor(commit, of).unwrap_or(false);
        head.into_iter().chain(live).any(is_part)
    }

    /// Returns what a commit that is only read may cost. Called with a build slot.
    fn budget_to_read(
        &self,
        repository: &Repository,
        is_followed: bool,
    ) -> Result<Budget, BuildError> {
        if is_followed {
            return Ok(self.budget);
        }
        let Some(live) = self.live.commit() else { return Ok(self.budget.for_unreviewed(None)) };
        // Evicted between its build and its activation: without its counts, heads that are as large
        // would be rejected.
        if self.cache.lock().built(live).is_none() {
            self.build_now(repository, live, self.budget, &|| true)?;
        }
        let counts = self.cache.lock().built(live).map(|it| it.checked.counts());
        Ok(self.budget.for_unreviewed(counts.as_ref()))
    }

    /// Builds a commit with a build slot, unless the one before built it.
    fn build_now(
        &self,
        repository: &Repository,
        commit: CommitId,
        budget: Budget,
        is_wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<Outcome, BuildError> {
        if let Some(known) = self.cached(commit) {
            return Ok(known);
        }
        let near = repository.parents(commit).unwrap_or_default();
        let base = self.cache.lock().base(near.into_iter().chain(self.live.commit()));
        let (directory, cache) = (&*self.path, &self.readings);
        let build = Build { repository, commit, directory, cache, budget, is_wanted };
        let built = build.run(base.as_ref()).inspect_err(|error| {
            if let BuildError::Unreadable { source, .. } = error {
                self.note_unreadable(source);
            }
        })?;
        let outcome = built.outcome.clone();
        // What is too large for a smaller budget may be valid once the branch has it.
        if budget == self.budget || !outcome.is_too_large() {
            let live = self.live.commit();
            self.cache.lock().insert(commit, built, live, self.cache_bytes);
        }
        Ok(outcome)
    }

    /// Returns the commit of a revision. Where objects are damaged, the next fetch fetches everything again.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit, or it cannot be read.
    pub(super) fn resolve(
        &self,
        repository: &Repository,
        revision: &str,
    ) -> Result<CommitId, ResolveError> {
        repository.resolve(revision).inspect_err(|error| {
            if let ResolveError::Unreadable(error) = error {
                self.note_unreadable(error);
            }
        })
    }

    /// Has the next fetch fetch everything again if objects are damaged.
    pub(super) fn note_unreadable(&self, error: &ReadError) {
        if error.fault() == ObjectFault::Damaged {
            tracing::error!(%error, "objects of the repository are damaged");
            self.state.lock().note_damage(error.to_string());
        }
    }

    /// Returns the outcome of a commit if it is kept.
    pub(super) fn cached(&self, commit: CommitId) -> Option<Outcome> {
        self.cache.lock().get(commit)
    }

    /// Returns the build of a valid commit if it is kept.
    pub(super) fn cached_build(&self, commit: CommitId) -> Option<Built> {
        let built = self.cache.lock().base([commit]);
        built.filter(|it| it.outcome.commit() == commit)
    }

    /// Returns the outcomes that are kept.
    pub(super) fn all(&self) -> Vec<(CommitId, Outcome)> {
        self.cache.lock().all()
    }

    /// Returns whether a commit that is kept is one of a write that was not pushed.
    pub(super) fn is_unpushed(&self, commit: CommitId) -> bool {
        self.cache.lock().built(commit).is_some_and(|it| it.is_unpushed)
    }

    /// Notes a push of a commit that a write made.
    pub(super) fn note_push(&self, commit: CommitId, pushed: Result<(), &PushError>) {
        if matches!(pushed, Ok(()) | Err(PushError::Unknown(_))) {
            self.cache.lock().note_unpushed(commit, false);
        }
    }

    /// Returns the queue of builds.
    pub(super) fn queue(&self) -> &BuildQueue {
        &self.queue
    }

    /// Returns the files that have been read.
    pub(super) fn readings(&self) -> &ReadingCache {
        &self.readings
    }

    pub(super) fn budget(&self) -> Budget {
        self.budget
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::clock::Now;
    use crate::reconcile::policy::Policy;
    use crate::reconcile::state::{ReconcileState, SourceKind};

    /// Makes a repository of two commits, the second of which adds a group.
    fn repository(directory: &std::path::Path) -> (Repository, [CommitId; 2]) {
        let git = git2::Repository::init_bare(directory).unwrap();
        let who = git2::Signature::now("a", "a@example.com").unwrap();
        let mut commits = Vec::new();
        for text in ["name: Web\n", "name: Database\n"] {
            let mut groups = git.treebuilder(None).unwrap();
            groups.insert("a.yaml", git.blob(text.as_bytes()).unwrap(), 0o100_644).unwrap();
            let mut tree = git.treebuilder(None).unwrap();
            tree.insert("groups", groups.write().unwrap(), 0o040_000).unwrap();
            let tree = git.find_tree(tree.write().unwrap()).unwrap();
            let parent = commits.last().map(|it| git.find_commit(*it).unwrap());
            let parents: Vec<_> = parent.iter().collect();
            commits.push(git.commit(None, &who, &who, "a commit", &tree, &parents).unwrap());
        }
        let ids = [0, 1].map(|it: usize| commits[it].to_string().parse().unwrap());
        (Repository::at(directory).unwrap(), ids)
    }

    /// In each, `is_followed` fails where a slot is held.
    #[test]
    fn history_is_read_before_a_slot_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let (repository, [first, second]) = repository(directory.path());
        let mut state = ReconcileState::new(Policy::default(), SourceKind::Local, Now::read());
        state.note_written(second, Now::read());
        let (live, state) = (Arc::default(), Arc::new(SharedState::new(state)));
        let store = SnapshotStore::new("groups".to_owned(), Budget::DEFAULT, 0, live, state);
        for commit in [first, second] {
            store.read_unverified(&repository, commit, Priority::Reads).unwrap();
            assert_eq!(store.budget_of_head(&repository, commit).unwrap(), store.budget);
            store.blame(&repository, commit, &|| true).map(drop).unwrap();
        }
        assert!(!BuildSlot::is_held_here());
    }
}
