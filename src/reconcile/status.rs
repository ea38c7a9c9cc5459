//! The controller's own status document.

use std::sync::Arc;

use jiff::Timestamp;

use super::attribution::Pin;
use super::journal::Stage;
use super::outcome::Rejected;
use super::trigger::Trigger;
use crate::git::FetchFailure;
use crate::model::CommitId;
use crate::telemetry::Scrape;

/// The status document.
#[derive(Clone, Debug)]
pub struct Status {
    /// The version of the daemon.
    pub version: &'static str,
    /// When it started.
    pub started_at: Timestamp,
    /// The branch that is followed.
    pub repository: FollowedBranch,
    /// The live commit.
    pub active: Option<ActiveCommit>,
    /// The newest commit of the branch.
    pub observed: Option<ObservedCommit>,
    /// How fetching goes.
    pub remote: RemoteState,
    /// The newest commit, if it was rejected.
    pub last_failed: Option<FailedCommit>,
    /// The commit an operator pinned.
    pub pin: Option<Pin>,
    /// Which commits must be signed: `off`, `head` or `range`.
    pub verification: &'static str,
    /// The conditions; negative ones are present only while they are true.
    pub conditions: Vec<Condition>,
}

/// The branch that is followed.
#[derive(Clone, Debug)]
pub struct FollowedBranch {
    /// Where the repository is, without credentials.
    pub url: String,
    /// The branch; none for a detached HEAD.
    pub branch: Option<String>,
    /// The directory of the groups.
    pub path: String,
}

/// The live commit.
#[derive(Clone, Debug)]
pub struct ActiveCommit {
    /// Its id.
    pub commit: CommitId,
    /// Who made it.
    pub author: String,
    /// When, by the committer's clock.
    pub time: Timestamp,
    /// The first line of its message.
    pub subject: String,
    /// Since when it is live here.
    pub activated_at: Timestamp,
    /// How many groups it has, the root group counted.
    pub groups: usize,
    /// What made it live.
    pub trigger: Trigger,
}

/// The newest commit of the branch.
#[derive(Clone, Copy, Debug)]
pub struct ObservedCommit {
    /// Its id.
    pub commit: CommitId,
    /// When the branch was fetched last.
    pub fetched_at: Timestamp,
}

/// How fetching goes.
#[derive(Clone, Debug, Default)]
pub struct RemoteState {
    /// When it was tried last.
    pub last_attempt: Option<Timestamp>,
    /// When it went well last.
    pub last_contact: Option<Timestamp>,
    /// When the branch moved last.
    pub last_change: Option<Timestamp>,
    /// For how many seconds the branch was not seen, across restarts; since the start if it never was.
    pub staleness_seconds: u64,
    /// How many tries failed in a row.
    pub consecutive_failures: u32,
    /// What the last one failed with.
    pub error: Option<String>,
    /// The commits that webhooks announced and that the remote does not show yet.
    pub expected: Vec<CommitId>,
}

/// A commit that was rejected.
#[derive(Clone, Debug)]
pub struct FailedCommit {
    /// Its id.
    pub commit: CommitId,
    /// Where it failed.
    pub stage: Stage,
    /// What is wrong with it.
    pub cause: FailureCause,
}

/// What is wrong with a rejected commit.
#[derive(Clone, Debug)]
pub enum FailureCause {
    /// A problem of the commit as a whole, such as its signature.
    Commit(String),
    /// Findings in its files.
    Findings(Arc<Rejected>),
}

impl FailedCommit {
    /// Returns a commit that is rejected as a whole.
    pub(super) fn as_a_whole(
        commit: CommitId,
        stage: Stage,
        problem: &dyn std::fmt::Display,
    ) -> Self {
        Self { commit, stage, cause: FailureCause::Commit(problem.to_string()) }
    }

    /// Returns a commit that is rejected for findings in its files.
    pub(super) fn by_findings(rejected: &Arc<Rejected>) -> Self {
        let cause = FailureCause::Findings(Arc::clone(rejected));
        Self { commit: rejected.commit, stage: Stage::Check, cause }
    }

    /// Returns how many errors there are.
    pub(super) fn errors(&self) -> usize {
        match &self.cause {
            FailureCause::Commit(_) => 1,
            FailureCause::Findings(rejected) => rejected.errors().count(),
        }
    }

    /// Returns the first error, and how many there are.
    pub(super) fn in_short(&self) -> String {
        let first = match &self.cause {
            FailureCause::Commit(problem) => Some(problem),
            FailureCause::Findings(rejected) => rejected.errors().next().map(|it| &it.message),
        };
        match (self.errors(), first) {
            (0 | 1, Some(message)) => message.clone(),
            (errors, Some(message)) => format!("{errors} errors, the first: {message}"),
            (_, None) => "it cannot be used".to_owned(),
        }
    }
}

impl Status {
    /// Returns what the metrics show of it, and how many builds are kept.
    pub(super) fn scrape(&self, retained: usize) -> Scrape {
        let second = |time: Option<Timestamp>| time.map(Timestamp::as_second);
        let is_true =
            |it: &Condition| (format!("{:?}", it.kind), it.status == ConditionStatus::True);
        Scrape {
            revision: self.active.as_ref().map(|it| it.commit.to_string()),
            groups: self.active.as_ref().map_or(0, |it| it.groups),
            retained,
            conditions: self.conditions.iter().map(is_true).collect(),
            last_attempt: second(self.remote.last_attempt),
            last_contact: second(self.remote.last_contact),
            last_change: second(self.remote.last_change),
            last_activation: second(self.active.as_ref().map(|it| it.activated_at)),
            staleness: self.remote.staleness_seconds,
            failures: self.remote.consecutive_failures,
        }
    }
}

/// One condition of the daemon.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// What it is about.
    pub kind: ConditionKind,
    /// `True` or `False`.
    pub status: ConditionStatus,
    /// Why, in one word.
    pub reason: Reason,
    /// Why, in one line.
    pub message: String,
    /// When status or reason changed last.
    pub last_transition: Timestamp,
}

/// The types of conditions, in the order of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConditionKind {
    /// A commit is live.
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
    /// The remote shows an older commit than the live one, or not yet one that a webhook announced.
    RemoteBehind,
    /// The branch does not contain the commit that it was at.
    HistoryRewritten,
    /// A valid commit is not live, since an operator or a policy holds it.
    PromotionHeld,
    /// The last fetch is too long ago.
    Stale,
    /// A push has been under way for long.
    PushStalled,
    /// Something could not be written to disk.
    StorageFailed,
    /// Check-ins cannot be kept or read.
    CheckInsFailed,
    /// A damaged file of check-ins was put aside.
    CheckInsLost,
    /// The live commit is signed by an allowed key.
    SourceVerified,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It does.
    True,
    /// It does not.
    False,
}

/// Why a condition is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    ShallowRemote,
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
            FetchFailure::ShallowRemote => Self::ShallowRemote,
            FetchFailure::LimitExceeded => Self::LimitExceeded,
            FetchFailure::CorruptObjects => Self::CorruptObjects,
            FetchFailure::DiskFull => Self::DiskFull,
            FetchFailure::LockHeld => Self::LockHeld,
            FetchFailure::OlderThanLive => Self::OlderThanLive,
            FetchFailure::InvalidSettings => Self::InvalidSettings,
            FetchFailure::MalformedResponse | FetchFailure::Other => Self::FetchFailed,
        }
    }
}
