//! The controller's own status document.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::journal::Stage;
use super::trigger::Trigger;
use crate::git::FetchFailure;
use crate::model::CommitId;

/// The status document.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The version of the daemon.
    pub version: &'static str,
    /// When it started.
    pub started_at: Timestamp,
    /// What is watched.
    pub repository: Watched,
    /// The commit that answers.
    pub active: Option<Active>,
    /// The newest commit of the branch.
    pub observed: Option<Observed>,
    /// How looking at the repository goes.
    pub remote: Remote,
    /// The newest commit, if it does not answer.
    pub last_failed: Option<LastFailed>,
    /// The commit an operator pinned.
    pub pinned: Option<CommitId>,
    /// Whose commits may answer: `off`, `head` or `range`.
    pub verification: &'static str,
    /// How things stand; negative conditions are present only while they are true.
    pub conditions: Vec<Condition>,
}

/// What is watched.
#[derive(Clone, Debug, Serialize)]
pub struct Watched {
    /// Where the repository is, without credentials.
    pub url: String,
    /// The branch; none for a detached HEAD.
    pub branch: Option<String>,
    /// The directory of the groups.
    pub path: String,
}

/// The commit that answers.
#[derive(Clone, Debug, Serialize)]
pub struct Active {
    /// Its id.
    pub commit: CommitId,
    /// Who made it.
    pub author: String,
    /// When, by the committer's clock.
    pub time: Timestamp,
    /// The first line of its message.
    pub subject: String,
    /// Since when it answers here.
    pub activated_at: Timestamp,
    /// How many groups it has, the root group counted.
    pub groups: usize,
    /// What brought it here.
    pub trigger: Trigger,
}

/// The newest commit of the branch.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Observed {
    /// Its id.
    pub commit: CommitId,
    /// When the branch was looked at last.
    pub fetched_at: Timestamp,
}

/// How looking at the repository goes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Remote {
    /// When it was tried last.
    pub last_attempt: Option<Timestamp>,
    /// When it went well last.
    pub last_contact: Option<Timestamp>,
    /// When the branch moved last.
    pub last_change: Option<Timestamp>,
    /// How many seconds ago the branch was last seen; none before the first time.
    pub staleness_seconds: Option<u64>,
    /// How many tries failed in a row.
    pub consecutive_failures: u32,
    /// What the last one failed with.
    pub error: Option<String>,
    /// The commits that webhooks told of and that are not to be seen yet.
    pub expected: Vec<CommitId>,
}

/// A commit that does not answer.
#[derive(Clone, Debug, Serialize)]
pub struct LastFailed {
    /// Its id.
    pub commit: CommitId,
    /// Where it failed.
    pub stage: Stage,
    /// What is wrong with it.
    pub diagnostics: Vec<Value>,
}

/// How one thing stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: ConditionKind,
    /// `True` or `False`.
    pub status: Truth,
    /// Why, in one word.
    pub reason: Reason,
    /// Why, in one line.
    pub message: String,
    /// When status or reason changed last.
    pub last_transition: Timestamp,
}

/// What a condition is about, in the order that people are shown them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum ConditionKind {
    /// A commit answers.
    Ready,
    /// A new commit is on its way.
    Reconciling,
    /// The newest commit is not valid.
    CandidateRejected,
    /// The remote cannot be fetched.
    FetchFailed,
    /// The watched ref is gone.
    RefMissing,
    /// Refs beside the watched one cannot be fetched.
    RefsSkipped,
    /// The remote shows an older commit than the one that answers, or not yet what a webhook told.
    RemoteBehind,
    /// The branch does not contain the commit that it was at.
    HistoryRewritten,
    /// A valid commit does not answer, since an operator or a policy holds it.
    PromotionHeld,
    /// The branch was not seen for too long.
    Stale,
    /// A push has been under way for long.
    PushStalled,
    /// Something could not be written to disk.
    StorageFailed,
    /// Check-ins cannot be kept or read.
    CheckInsFailed,
    /// A damaged file of check-ins was put aside.
    CheckInsLost,
    /// The commit that answers is signed by somebody who may.
    SourceVerified,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Truth {
    /// It does.
    True,
    /// It does not.
    False,
}

/// Why a condition is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[expect(missing_docs, reason = "each is a word of the documentation's table of reasons")]
pub enum Reason {
    Serving,
    NoSnapshotYet,
    Fetching,
    Building,
    Pushing,
    AuthenticationFailed,
    HostKeyMismatch,
    TlsFailed,
    DnsFailed,
    ConnectFailed,
    Timeout,
    RepositoryNotFound,
    RedirectRefused,
    RefNotFound,
    UnusableRef,
    LimitExceeded,
    CorruptObjects,
    DiskFull,
    LockHeld,
    ValidationFailed,
    Panicked,
    SignatureMissing,
    SignatureInvalid,
    SignerNotAllowed,
    SignatureGood,
    WebhookCommitNotVisible,
    InvalidSettings,
    FetchFailed,
    HistoryRewritten,
    OlderThanLive,
    Pinned,
    OnRewriteHold,
    MaxStalenessExceeded,
    WriteFailed,
    Damaged,
}

impl From<FetchFailure> for Reason {
    fn from(failure: FetchFailure) -> Self {
        match failure {
            FetchFailure::AuthenticationFailed => Self::AuthenticationFailed,
            FetchFailure::HostKeyMismatch => Self::HostKeyMismatch,
            FetchFailure::TlsFailed => Self::TlsFailed,
            FetchFailure::DnsFailed => Self::DnsFailed,
            FetchFailure::ConnectFailed => Self::ConnectFailed,
            FetchFailure::Timeout => Self::Timeout,
            FetchFailure::RepositoryNotFound => Self::RepositoryNotFound,
            FetchFailure::RedirectRefused => Self::RedirectRefused,
            FetchFailure::RefNotFound => Self::RefNotFound,
            FetchFailure::UnusableRef => Self::UnusableRef,
            FetchFailure::LimitExceeded => Self::LimitExceeded,
            FetchFailure::CorruptObjects => Self::CorruptObjects,
            FetchFailure::DiskFull => Self::DiskFull,
            FetchFailure::LockHeld => Self::LockHeld,
            FetchFailure::InvalidSettings => Self::InvalidSettings,
            FetchFailure::Other => Self::FetchFailed,
        }
    }
}
