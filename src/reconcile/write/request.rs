//! Writes as clients send them, and their outcomes.

use std::fmt;
use std::sync::Arc;

use super::receipt::DeliveryReceipt;
use crate::changeset::{Operation, Rejection, WriteGrant, WriteOutcome};
use crate::diagnostic::Diagnostic;
use crate::forge::Forge;
use crate::git::{FetchError, FetchFailure, ObjectFault, Person, PushError, ReadError};
use crate::history::Edit;
use crate::model::CommitId;
use crate::reconcile::errors::{LookupError, StorageError};
use crate::reconcile::outcome::BuildError;
use crate::reconcile::state::SourceKind;
use crate::snapshot::Snapshot;

/// How writes are made.
#[derive(Clone, Debug)]
pub struct WriteSettings {
    /// What a write becomes.
    pub mode: WriteMode,
    /// The committer of the commits.
    pub committer: Person,
    /// Lines at the end of every message, such as `Change-Kind: data`.
    pub trailers: Vec<String>,
    /// How often a write is applied again when another push came first.
    pub retries: usize,
    /// Where pull requests are opened.
    pub forge: Option<Forge>,
}

/// What a write becomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteMode {
    /// A refusal: groups change by commits alone.
    #[default]
    Off,
    /// A commit on the branch.
    Commit,
    /// A commit on a branch of its own, for review.
    Propose,
}

/// A write, and the client that sent it.
#[derive(Clone, Debug)]
pub struct WriteRequest {
    /// The operation.
    pub operation: Operation,
    /// The grants of the client; the first that allows all of it names the actor.
    pub grants: Vec<WriteGrant>,
    /// Says whether the client still has them.
    pub rights: RightsCheck,
    /// The request in one line, for the message: `POST /v1/groups`.
    pub line: String,
    /// The same for the same request of the same client.
    pub fingerprint: String,
}

impl WriteRequest {
    /// Checks that the client has the rights that it came with: a write may wait for a remote, and its body for the client.
    ///
    /// # Errors
    ///
    /// Returns the refusal.
    pub(super) fn check_rights_held(&self) -> Result<(), WriteError> {
        match (self.rights.0)() {
            true => Ok(()),
            false => Err(WriteError::Rejected(Rejection::changed_rights())),
        }
    }
}

/// Says whether a client still has the rights that it came with.
#[derive(Clone)]
pub struct RightsCheck(Arc<dyn Fn() -> bool + Send + Sync>);

impl RightsCheck {
    /// Makes one of a function that returns whether the client still has them.
    pub fn new(check: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }
}

/// Rights that do not change.
impl Default for RightsCheck {
    fn default() -> Self {
        Self::new(|| true)
    }
}

impl fmt::Debug for RightsCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RightsCheck").finish_non_exhaustive()
    }
}

/// A write that is in effect, or proposed.
#[derive(Clone, Debug)]
pub enum Written {
    /// It is at the remote and live.
    Active {
        /// The live snapshot.
        snapshot: Arc<Snapshot>,
        /// The answer to the client.
        answer: WriteOutcome,
        /// When and how often the group of the answer was edited, if that is known.
        edit: Option<Edit>,
        /// Whether a commit was made; none is if everything was as wanted.
        changed: bool,
        /// Takes note when the answer was sent; none where there was nothing to write.
        receipt: Option<Arc<DeliveryReceipt>>,
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
    Rejected(Rejection),
    /// The groups would not be valid.
    #[error("the groups would not be valid")]
    Invalid(Vec<Arc<Diagnostic>>),
    /// The state of the branch does not allow writes.
    #[error("{0}")]
    Blocked(String),
    /// Other pushes came first too often.
    #[error("others changed the branch meanwhile, {0} times in a row")]
    Conflict(usize),
    /// The remote rejects it.
    #[error("the remote refuses the change: {0}")]
    RemoteRejected(String),
    /// The remote cannot be reached; nothing changed.
    #[error("nothing was changed: {0}")]
    Unreachable(FetchError),
    /// It is not known whether it is at the remote.
    #[error("whether the change is at the remote is not known, sending it again is safe: {0}")]
    Unknown(FetchError),
    /// It is on the branch, and an operator pinned another commit while it was pushed.
    #[error(
        "the change is on the branch as the commit {commit} and does not answer, since an operator \
         pinned {pinned} meanwhile: it answers after a resume"
    )]
    NotInEffect {
        /// The commit of the change.
        commit: CommitId,
        /// The live commit.
        pinned: CommitId,
    },
    /// It could not be noted on disk before it was pushed, so it was not.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// No commit is live.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// Something failed here.
    #[error("{0}")]
    Internal(String),
}

impl WriteError {
    /// Returns the error of a write whose branch could not be fetched before it: the remote is out of reach, or there is
    /// no room here.
    pub(super) fn unfetched(error: FetchError) -> Self {
        Self::failed(error, "the mirror")
    }

    /// Returns the error of a remote whose reads are older than its writes.
    pub(super) fn lag(message: &str) -> Self {
        let message = format!("{message}, as a replica that lags: send it again soon");
        Self::Unreachable(FetchError { failure: FetchFailure::OlderThanLive, message })
    }

    /// Returns the error where nothing was changed; `here` is what would have been written on this machine.
    fn failed(error: FetchError, here: &'static str) -> Self {
        match error.failure {
            // Not those of the client.
            FetchFailure::AuthenticationFailed => Self::Unreachable(FetchError {
                message: format!(
                    "the remote refuses the credentials of the daemon: {}",
                    error.message
                ),
                ..error
            }),
            FetchFailure::DiskFull => {
                Self::Storage(StorageError { what: here, reason: error.message })
            }
            _ => Self::Unreachable(error),
        }
    }
}

impl WriteError {
    /// Returns the error of something that fails only through a defect.
    pub(super) fn internal(error: &dyn fmt::Display) -> Self {
        Self::Internal(error.to_string())
    }

    /// Returns the error of an object that cannot be read or written.
    pub(super) fn of_object(error: &ReadError, source: SourceKind) -> Self {
        match (error.fault(), source) {
            // The next fetch brings it again.
            (ObjectFault::Damaged, SourceKind::Remote) => Self::Unreachable(FetchError {
                failure: FetchFailure::CorruptObjects,
                message: error.to_string(),
            }),
            (ObjectFault::DiskFull | ObjectFault::System, _) => {
                Self::Storage(StorageError { what: "the repository", reason: error.to_string() })
            }
            (ObjectFault::Damaged | ObjectFault::Other, _) => {
                Self::Lookup(LookupError::Unreadable(error.to_string()))
            }
        }
    }

    /// Returns the error of a commit that cannot be built.
    pub(super) fn of_build(error: &BuildError, source: SourceKind) -> Self {
        match error {
            BuildError::Unreadable { source: object, .. } => Self::of_object(object, source),
            BuildError::Busy | BuildError::Cancelled(_) => Self::internal(error),
        }
    }

    /// Returns whether the groups of a commit do not allow the write: those of another commit may.
    pub(super) fn depends_on_groups(&self) -> bool {
        match self {
            Self::Rejected(rejection) => rejection.kind.depends_on_groups(),
            Self::Invalid(_) => true,
            _ => false,
        }
    }

    /// Returns the error of a write that is refused on a commit of which it is not known whether it is the newest, since
    /// something failed: it was in no push. A client without rights learns nothing by that.
    pub(super) fn of_refused(self, refusal: Self) -> Self {
        match self {
            _ if refusal.is_of_rights() => refusal,
            Self::Unknown(error) => Self::Unreachable(error),
            other => other,
        }
    }

    /// Returns whether the client lacks a right, be it to a group that is not there.
    pub(super) fn is_of_rights(&self) -> bool {
        matches!(self, Self::Rejected(it) if it.kind.is_of_rights())
    }

    /// Returns whether the write may be applied once what is damaged is fetched again.
    pub(super) fn is_of_damage(&self) -> bool {
        matches!(self, Self::Unreachable(error) if error.failure == FetchFailure::CorruptObjects)
    }
}

impl From<PushError> for WriteError {
    fn from(error: PushError) -> Self {
        match error {
            PushError::Moved => Self::Conflict(1),
            PushError::Rejected(words) => Self::RemoteRejected(words),
            PushError::Failed(error) => Self::failed(error, "the repository"),
            PushError::Unknown(error) => Self::Unknown(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_here_is_told_from_a_remote_out_of_reach() {
        let failed = |failure| FetchError { failure, message: "why".to_owned() };
        let full =
            |what| WriteError::Storage(StorageError { what, reason: "why".to_owned() }).to_string();
        let fetched = WriteError::unfetched(failed(FetchFailure::DiskFull));
        assert_eq!(fetched.to_string(), full("the mirror"));
        let pushed = WriteError::from(PushError::Failed(failed(FetchFailure::DiskFull)));
        assert_eq!(pushed.to_string(), full("the repository"));
        let away = WriteError::unfetched(failed(FetchFailure::Timeout));
        assert!(matches!(away, WriteError::Unreachable(_)), "{away}");
    }

    #[test]
    fn the_credentials_of_the_daemon_are_not_a_right_of_the_client() {
        let refused =
            FetchError { failure: FetchFailure::AuthenticationFailed, message: "401".to_owned() };
        for error in
            [WriteError::unfetched(refused.clone()), WriteError::from(PushError::Failed(refused))]
        {
            assert!(matches!(error, WriteError::Unreachable(_)), "{error}");
            let expected =
                "nothing was changed: the remote refuses the credentials of the daemon: 401";
            assert_eq!(error.to_string(), expected);
        }
    }
}
