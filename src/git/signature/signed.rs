//! A signed commit, and what can be wrong with its signature.

use std::fmt;

use jiff::Timestamp;

use crate::git::object_id::oid;
use crate::git::repository::{ReadError, Repository};
use crate::model::CommitId;

/// Who signed a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signer {
    /// The owner of the key, by the file of keys.
    pub name: String,
    /// The fingerprint of the key.
    pub key: String,
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.key)
    }
}

/// A commit is not signed by an allowed key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureFault {
    /// There is no signature.
    #[error("the commit {commit} is not signed")]
    Missing {
        /// The commit.
        commit: CommitId,
    },
    /// The signature is not one over this commit by the key that it names.
    #[error("the signature of the commit {commit} is not valid: {reason}")]
    Invalid {
        /// The commit.
        commit: CommitId,
        /// Why.
        reason: String,
    },
    /// The key is not among the allowed ones.
    #[error("the commit {commit} is signed by the key {key}, which is not allowed: {reason}")]
    NotAllowed {
        /// The commit.
        commit: CommitId,
        /// The fingerprint of the key.
        key: String,
        /// Why not.
        reason: String,
    },
    /// The keys cannot be read, so the signature cannot be checked.
    #[error("the signature of the commit {commit} cannot be checked: {reason}")]
    UnreadableKeys {
        /// The commit.
        commit: CommitId,
        /// Why.
        reason: String,
    },
    /// The commit or one in its history cannot be read, which says nothing of its signature.
    #[error("the signature of the commit {commit} cannot be checked: {source}")]
    UnreadableCommit {
        /// The commit.
        commit: CommitId,
        /// What cannot be read.
        source: ReadError,
    },
}

impl SignatureFault {
    /// Returns what of the repository cannot be read: the commit is neither verified nor refused.
    pub fn read_error(&self) -> Option<&ReadError> {
        match self {
            Self::UnreadableCommit { source, .. } => Some(source),
            Self::Missing { .. }
            | Self::Invalid { .. }
            | Self::NotAllowed { .. }
            | Self::UnreadableKeys { .. } => None,
        }
    }
}

/// Tells when a commit was here: the times in a commit are its author's to choose.
pub type SeenAt<'a> = &'a dyn Fn(CommitId) -> Sightings<'a>;

/// The times at which a commit was here, by the clock of this machine.
///
/// The clock may have been wrong at any of them. A key need only be valid at one, but wholly so: a time before its
/// start and one after its end make no time between them.
pub struct Sightings<'a> {
    earlier: Box<dyn Iterator<Item = Timestamp> + 'a>,
    now: Timestamp,
}

impl fmt::Debug for Sightings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sightings").field("now", &self.now).finish_non_exhaustive()
    }
}

impl<'a> Sightings<'a> {
    /// Returns the times of a commit that was seen before, the first one first, and is here now.
    pub fn new(earlier: impl Iterator<Item = Timestamp> + 'a, now: Timestamp) -> Self {
        Self { earlier: Box::new(earlier), now }
    }

    /// Returns the first of the faults if there is one at each of the times.
    pub(super) fn fault<F>(self, fault_at: impl Fn(Timestamp) -> Option<F>) -> Option<F> {
        let mut first = None;
        for time in self.earlier {
            let fault = fault_at(time)?;
            first.get_or_insert(fault);
        }
        let last = fault_at(self.now)?;
        first.or(Some(last))
    }
}

/// A commit without its signature, and the signature.
pub(super) struct Signed<'a> {
    pub(super) commit: CommitId,
    pub(super) signature: String,
    pub(super) content: Vec<u8>,
    /// When it was made, by its committer's clock: keys have their times.
    pub(super) time: Timestamp,
    pub(super) seen: SeenAt<'a>,
}

impl<'a> Signed<'a> {
    pub(super) fn read(
        repository: &Repository,
        commit: CommitId,
        seen: SeenAt<'a>,
    ) -> Result<Self, SignatureFault> {
        let unreadable = |source| SignatureFault::UnreadableCommit { commit, source };
        let time = repository.commit(commit).map_err(unreadable)?.time;
        match repository.inner().extract_signature(&oid(commit), None) {
            Ok((signature, content)) => Ok(Self {
                commit,
                signature: String::from_utf8_lossy(&signature).into_owned(),
                content: content.to_vec(),
                time,
                seen,
            }),
            // A commit that is missing is not found either.
            Err(error)
                if error.code() == git2::ErrorCode::NotFound
                    && error.class() != git2::ErrorClass::Odb =>
            {
                Err(SignatureFault::Missing { commit })
            }
            Err(error) => Err(unreadable(ReadError::of(format!("the commit {commit}"), &error))),
        }
    }

    /// Returns when the commit was here.
    pub(super) fn sightings(&self) -> Sightings<'a> {
        (self.seen)(self.commit)
    }

    pub(super) fn invalid(&self, reason: impl fmt::Display) -> SignatureFault {
        SignatureFault::Invalid { commit: self.commit, reason: reason.to_string() }
    }

    pub(super) fn not_allowed(&self, key: String, reason: impl fmt::Display) -> SignatureFault {
        SignatureFault::NotAllowed { commit: self.commit, key, reason: reason.to_string() }
    }

    pub(super) fn unreadable_keys(&self, reason: impl fmt::Display) -> SignatureFault {
        SignatureFault::UnreadableKeys { commit: self.commit, reason: reason.to_string() }
    }
}
