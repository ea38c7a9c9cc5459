//! Why a request about a commit cannot be answered.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::outcome::{BuildError, Rejected};
use super::state::NoSnapshotCause;
use crate::git::{OpenError, ReadError, ResolveError, RevisionError, SignatureFault};
use crate::model::CommitId;

/// No snapshot answers for a revision.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LookupError {
    /// No commit is live yet.
    #[error("no commit answers yet: {0}")]
    NoSnapshot(NoSnapshotCause),
    /// The live snapshot is too old to answer.
    #[error("the branch was not fetched for {} s, longer than `--max-staleness` allows", .0.as_secs())]
    Stale(Duration),
    /// There is no such commit.
    #[error(transparent)]
    Unknown(RevisionError),
    /// A commit that another replica serves has not arrived.
    #[error("the commit {0} is not fetched yet")]
    NotHereYet(CommitId),
    /// The commit is not valid.
    #[error("the commit {} is not valid", .0.commit)]
    Rejected(Arc<Rejected>),
    /// The commit is not signed as the settings demand.
    #[error(transparent)]
    Unverified(SignatureFault),
    /// What was asked for could not be written to disk.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Too many requests wait for other commits to be built.
    #[error("other commits are being built: try again soon")]
    Busy,
    /// No commit was live at a time.
    #[error("no commit answered here at {0}")]
    NothingThen(Timestamp),
    /// The repository cannot be read.
    #[error("{0}")]
    Unreadable(String),
}

/// Something could not be written to disk, so it did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be written, so nothing was changed: {reason}")]
pub struct StorageError {
    /// The journal, or the repository.
    pub(super) what: &'static str,
    /// What the system says.
    pub(super) reason: String,
}

impl From<Arc<Rejected>> for LookupError {
    fn from(rejected: Arc<Rejected>) -> Self {
        Self::Rejected(rejected)
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

impl From<SignatureFault> for LookupError {
    fn from(fault: SignatureFault) -> Self {
        match fault.read_error() {
            Some(error) => Self::Unreadable(error.to_string()),
            None => Self::Unverified(fault),
        }
    }
}

impl From<ResolveError> for LookupError {
    fn from(error: ResolveError) -> Self {
        match error {
            ResolveError::Unknown(error) => Self::Unknown(error),
            ResolveError::Unreadable(error) => error.into(),
        }
    }
}

impl From<OpenError> for LookupError {
    fn from(error: OpenError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

impl From<ReadError> for LookupError {
    fn from(error: ReadError) -> Self {
        Self::Unreadable(error.to_string())
    }
}
