//! What the controller asks of a remote.

use crate::git::{FetchError, Mirror, OpenError, PushError, ReadError, Repository};
use crate::model::CommitId;

/// A remote and the mirror of it, as the controller uses them.
pub trait Upstream: std::fmt::Debug + Send + Sync {
    /// Fetches the watched branch, and returns its head. Blocking.
    ///
    /// # Errors
    ///
    /// Returns why the branch cannot be fetched.
    fn fetch_watched(&self, branch: Option<&str>) -> Result<CommitId, FetchError>;

    /// Opens the mirror for reading.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be opened.
    fn repository(&self) -> Result<Repository, OpenError>;

    /// Moves a branch of the remote to a commit if it is at `expected`; none is for a new branch.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// Returns why the branch is not moved, or that this is not known.
    fn push(
        &self,
        branch: &str,
        commit: CommitId,
        expected: Option<CommitId>,
        watched: Option<&str>,
    ) -> Result<(), PushError>;

    /// Brings to the disk what was pushed since a commit, or the last commit alone, where that is a matter of this
    /// machine. Blocking.
    fn sync(
        &self,
        branch: &str,
        commit: CommitId,
        since: Option<CommitId>,
    ) -> Result<(), PushError>;

    /// Fetches everything again into a fresh mirror, into which commits are copied that the remote does not have.
    /// Blocking.
    ///
    /// # Errors
    ///
    /// Returns why the branch cannot be fetched; the mirror is then as it was.
    fn renew(&self, branch: Option<&str>, kept: &[CommitId]) -> Result<(), FetchError>;

    /// Returns the live commit that the mirror names.
    fn live(&self) -> Option<CommitId>;

    /// Names the live commit in the mirror.
    ///
    /// # Errors
    ///
    /// Returns an error if its ref cannot be written.
    fn set_live(&self, commit: CommitId) -> Result<(), ReadError>;

    /// Returns whether the mirror is lost with the process.
    fn is_temporary(&self) -> bool;

    /// Returns the mirror, for stages that work on its directory and its other refs.
    fn mirror(&self) -> Option<&Mirror> {
        None
    }
}

impl Upstream for Mirror {
    fn fetch_watched(&self, branch: Option<&str>) -> Result<CommitId, FetchError> {
        Self::fetch_watched(self, branch).map(|it| it.head)
    }

    fn repository(&self) -> Result<Repository, OpenError> {
        Self::repository(self)
    }

    fn push(
        &self,
        branch: &str,
        commit: CommitId,
        expected: Option<CommitId>,
        watched: Option<&str>,
    ) -> Result<(), PushError> {
        Self::push(self, branch, commit, expected, watched)
    }

    fn sync(
        &self,
        branch: &str,
        commit: CommitId,
        since: Option<CommitId>,
    ) -> Result<(), PushError> {
        Self::sync(self, branch, commit, since)
    }

    fn renew(&self, branch: Option<&str>, kept: &[CommitId]) -> Result<(), FetchError> {
        Self::renew(self, branch, kept).map(drop)
    }

    fn live(&self) -> Option<CommitId> {
        Self::live(self)
    }

    fn set_live(&self, commit: CommitId) -> Result<(), ReadError> {
        Self::set_live(self, commit)
    }

    fn is_temporary(&self) -> bool {
        Self::is_temporary(self)
    }

    fn mirror(&self) -> Option<&Mirror> {
        Some(self)
    }
}
