//! The one place where signatures are verified.
//!
//! What is served to an agent comes from a [`VerifiedCommit`], which only [`Verifier`] makes: a snapshot
//! that is made live, pinned, written or asked for by its commit. The exceptions answer people about
//! commits, and their snapshots cannot be made live: comparisons and findings take heads of pull
//! requests ([`SnapshotStore::read_unverified`](super::snapshot_store::SnapshotStore::read_unverified)).

use std::collections::HashSet;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::live::LiveSnapshots;
use super::recorder::Recorder;
use super::shared_state::SharedState;
use crate::git::{
    Base, CommitPresence, KeyFiles, ObjectFault, Repository, Sightings, SignatureFault, Signer,
    Verification, VerifyMode, WatchedKeys,
};
use crate::model::CommitId;

/// How many verified commits are taken from the journal, newest first: one would do for a branch that
/// only grows, and more are needed after rewrites and pins.
const VERIFIED: usize = 64;

/// How many commits are remembered whose history is verified.
const REMEMBERED: usize = 4_096;

/// A commit whose signatures are what `--verify` demands.
#[derive(Clone, Debug)]
pub(super) struct VerifiedCommit {
    id: CommitId,
    signer: Option<Signer>,
    keys: KeyFiles,
}

impl VerifiedCommit {
    pub(super) fn id(&self) -> CommitId {
        self.id
    }

    /// Returns who signed it, where that is demanded.
    pub(super) fn signer(&self) -> Option<&Signer> {
        self.signer.as_ref()
    }

    /// Returns what the files of keys contained by which it was verified.
    pub(super) fn keys(&self) -> &KeyFiles {
        &self.keys
    }
}

/// What vouches for a commit where nothing is verified yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// It is the head of the branch or an operator's choice: its own signature vouches for what it
    /// contains.
    Begin,
    /// Any caller may have asked for it: everything that it contains must be signed.
    Nothing,
}

/// Verifies signatures.
#[derive(Debug)]
pub(super) struct Verifier {
    verification: Verification,
    keys: WatchedKeys,
    recorder: Arc<Recorder>,
    live: Arc<LiveSnapshots>,
    state: Arc<SharedState>,
    verified: Mutex<VerifiedHistories>,
    /// How a resume last searched for a valid commit.
    fallback: Mutex<FallbackSearch>,
}

/// How a search for the newest valid commit ended.
#[derive(Debug)]
pub(super) enum FallbackSearch {
    /// By these keys, whatever it found: others may lead to another commit.
    Ended(KeyFiles),
    /// At a commit that could not be read, and that the next fetch may mend.
    Interrupted,
}

/// Commits whose whole history is verified. Anyone may have asked for them, and few were live, so they count only as
/// long as the keys stay the same; the journal has the commits that were live.
#[derive(Debug, Default)]
struct VerifiedHistories {
    keys: KeyFiles,
    heads: HashSet<CommitId>,
}

impl VerifiedHistories {
    fn has(&self, keys: &KeyFiles, head: CommitId) -> bool {
        self.keys == *keys && self.heads.contains(&head)
    }

    fn insert(&mut self, keys: KeyFiles, head: CommitId) {
        if self.keys != keys || self.heads.len() >= REMEMBERED {
            *self = Self { keys, heads: HashSet::new() };
        }
        self.heads.insert(head);
    }
}

/// The commits that vouch for what they contain.
#[derive(Default)]
struct KnownCommits {
    /// How many have answered.
    named: usize,
    /// Those that can be read here.
    readable: Vec<CommitId>,
}

impl Verifier {
    pub(super) fn new(
        verification: Verification,
        recorder: Arc<Recorder>,
        live: Arc<LiveSnapshots>,
        state: Arc<SharedState>,
    ) -> Self {
        let fallback = Mutex::new(FallbackSearch::Ended(KeyFiles::default()));
        let (keys, verified) = (verification.watch_keys(), Mutex::default());
        Self { verification, keys, recorder, live, state, verified, fallback }
    }

    pub(super) fn mode(&self) -> VerifyMode {
        self.verification.mode
    }

    /// Verifies a commit. Where objects are damaged, the next fetch fetches everything again.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with its signature or one in its history, or what of them cannot be read.
    pub(super) fn verify(
        &self,
        repository: &Repository,
        commit: CommitId,
        trust: Trust,
    ) -> Result<VerifiedCommit, SignatureFault> {
        self.verify_by(&self.keys(), repository, commit, trust)
    }

    /// Returns what the files of keys contain, if signatures are demanded. Blocking, while one of them changes.
    pub(super) fn keys(&self) -> KeyFiles {
        match self.mode() {
            VerifyMode::Off => KeyFiles::default(),
            VerifyMode::Head | VerifyMode::Range => self.keys.read(),
        }
    }

    /// Verifies a commit by what the files of keys contained.
    ///
    /// # Errors
    ///
    /// As [`Self::verify`].
    pub(super) fn verify_by(
        &self,
        keys: &KeyFiles,
        repository: &Repository,
        commit: CommitId,
        trust: Trust,
    ) -> Result<VerifiedCommit, SignatureFault> {
        if self.mode() == VerifyMode::Off {
            return Ok(VerifiedCommit { id: commit, signer: None, keys: KeyFiles::default() });
        }
        // The history of a verified commit does not change; the keys may, and when its own signature is valid.
        let signer = if self.verified.lock().has(keys, commit) {
            self.check(keys, repository, commit, Base::Trusted)?
        } else {
            let KnownCommits { named, readable: known } = self.known(repository, commit)?;
            // Where commits have answered and none of them is here, nothing vouches for what the commit contains.
            let base = match trust {
                Trust::Begin if named == 0 => Base::Trusted,
                Trust::Begin | Trust::Nothing => Base::Verified(&known),
            };
            let signer = self.check(keys, repository, commit, base)?;
            self.verified.lock().insert(keys.clone(), commit);
            signer
        };
        Ok(VerifiedCommit { id: commit, signer, keys: keys.clone() })
    }

    /// Returns whether the files of keys still contain what they did, and none of them is changing.
    pub(super) fn are_current(&self, keys: &KeyFiles) -> bool {
        self.mode() == VerifyMode::Off || self.keys.are_current(keys)
    }

    /// Returns who signed the live commit, whatever its history: a key may have been removed since
    /// it was verified.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with its signature.
    pub(super) fn signer_of(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<Option<Signer>, SignatureFault> {
        self.check(&self.keys(), repository, commit, Base::Trusted)
    }

    fn check(
        &self,
        keys: &KeyFiles,
        repository: &Repository,
        commit: CommitId,
        base: Base<'_>,
    ) -> Result<Option<Signer>, SignatureFault> {
        let seen = |it| self.sightings(repository, it);
        let checked = self.verification.check(keys, repository, commit, base, &seen);
        checked.inspect_err(|fault| self.note_damage(fault))
    }

    /// Notes how a resume searched for a valid commit.
    pub(super) fn note_fallback(&self, search: FallbackSearch) {
        *self.fallback.lock() = search;
    }

    /// Returns whether a resume last came to a commit that could not be read when it searched for a valid one.
    pub(super) fn is_fallback_interrupted(&self) -> bool {
        matches!(*self.fallback.lock(), FallbackSearch::Interrupted)
    }

    /// Returns whether a resume is to search for a valid commit again: keys have changed, or a commit could not be read.
    pub(super) fn is_fallback_due(&self) -> bool {
        let ended = match &*self.fallback.lock() {
            FallbackSearch::Ended(keys) => keys.clone(),
            FallbackSearch::Interrupted => return true,
        };
        ended != self.keys()
    }

    /// Has the next fetch fetch everything again if objects are damaged.
    fn note_damage(&self, fault: &SignatureFault) {
        if let Some(error) = fault.read_error()
            && error.fault() == ObjectFault::Damaged
        {
            tracing::error!(%error, "objects of the repository are damaged");
            self.state.lock().note_damage(error.to_string());
            self.state.notify();
        }
    }

    /// Returns the verified commits that the repository has.
    ///
    /// # Errors
    ///
    /// Returns an error if some are there and none can be read: then it is not known what they vouch for.
    fn known(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<KnownCommits, SignatureFault> {
        // Where only heads are verified, nothing is vouched for.
        if self.mode() != VerifyMode::Range {
            return Ok(KnownCommits::default());
        }
        let mut known = self.recorder.journal().verified(VERIFIED);
        known.extend(self.live.commit());
        let (named, mut damage) = (known.len(), None);
        known.retain(|it| {
            let error = repository.commit(*it).err();
            let is_readable = error.is_none();
            // One that is gone says nothing: the branch may have been rewritten.
            if !is_readable && repository.presence(*it) != CommitPresence::Absent {
                damage = damage.take().or(error);
            }
            is_readable
        });
        match damage.filter(|_| known.is_empty()) {
            Some(source) => {
                let fault = SignatureFault::UnreadableCommit { commit, source };
                self.note_damage(&fault);
                Err(fault)
            }
            None => Ok(KnownCommits { named, readable: known }),
        }
    }

    /// Returns when a commit was here: when it was the head or became live, with the first head of the branch that
    /// contains it, and now.
    fn sightings<'r>(&self, repository: &'r Repository, commit: CommitId) -> Sightings<'r> {
        let heads = self.recorder.journal().seen();
        let own: Vec<Timestamp> =
            heads.iter().filter(|(_, head)| *head == commit).map(|(time, _)| *time).collect();
        let contained = move || {
            // Where the branch only grew, every head after the first that has the commit has it too; after a
            // rewrite a later one may be found, which is on the safe side.
            let lacks = |head: CommitId| !repository.is_ancestor(commit, head).unwrap_or(false);
            let first = heads.partition_point(|(_, head)| lacks(*head));
            heads.get(first).map(|(time, _)| *time)
        };
        let earlier = own.into_iter().chain(std::iter::once_with(contained).flatten());
        Sightings::new(earlier, Timestamp::now())
    }
}
