//! The controller's own status document.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::journal::Stage;
use super::outcome::Rejected;
use super::trigger::Trigger;
use crate::diagnostic;
use crate::git::FetchFailure;
use crate::model::CommitId;
use crate::telemetry::Scrape;

/// The status document.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// The version of the daemon.
    pub version: &'static str,
    /// When it started.
    pub started_at: Timestamp,
    /// The branch that is followed.
    pub repository: Watched,
    /// The live commit.
    pub active: Option<Active>,
    /// The newest commit of the branch.
    pub observed: Option<Observed>,
    /// How fetching goes.
    pub remote: Remote,
    /// The newest commit, if it was rejected.
    pub last_failed: Option<LastFailed>,
    /// The commit an operator pinned.
    pub pinned: Option<CommitId>,
    /// Which commits must be signed: `off`, `head` or `range`.
    pub verification: &'static str,
    /// The conditions; negative ones are present only while they are true.
    pub conditions: Vec<Condition>,
}

/// The branch that is followed.
#[derive(Clone, Debug, Serialize)]
pub struct Watched {
    /// Where the repository is, without credentials.
    pub url: String,
    /// The branch; none for a detached HEAD.
    pub branch: Option<String>,
    /// The directory of the groups.
    pub path: String,
}

/// The live commit.
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
    /// Since when it is live here.
    pub activated_at: Timestamp,
    /// How many groups it has, the root group counted.
    pub groups: usize,
    /// What made it live.
    pub trigger: Trigger,
}

/// The newest commit of the branch.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Observed {
    /// Its id.
    pub commit: CommitId,
    /// When the branch was fetched last.
    pub fetched_at: Timestamp,
}

/// How fetching goes.
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
    /// The commits that webhooks announced and that the remote does not show yet.
    pub expected: Vec<CommitId>,
}

/// A commit that was rejected.
#[derive(Clone, Debug, Serialize)]
pub struct LastFailed {
    /// Its id.
    pub commit: CommitId,
    /// Where it failed.
    pub stage: Stage,
    /// The findings.
    pub diagnostics: Vec<Value>,
}

impl LastFailed {
    /// Returns a problem of the commit as a whole, in the shape of a diagnostic.
    pub(super) fn of_commit(
        commit: CommitId,
        stage: Stage,
        problem: &dyn std::fmt::Display,
    ) -> Self {
        let problem = json!({"kind": null, "severity": "error", "message": problem.to_string()});
        Self { commit, stage, diagnostics: vec![problem] }
    }

    /// Returns the findings that reject a commit.
    pub(super) fn of_rejected(rejected: &Rejected) -> Self {
        let diagnostics = rejected.diagnostics.iter().map(diagnostic::to_value).collect();
        Self { commit: rejected.commit, stage: Stage::Check, diagnostics }
    }

    /// Returns how many errors there are.
    pub(super) fn errors(&self) -> usize {
        self.diagnostics.iter().filter(|it| is_error(it)).count()
    }

    /// Returns the first error, and how many there are.
    pub(super) fn in_short(&self) -> String {
        let first = self.diagnostics.iter().find_map(|it| it.get("message")?.as_str());
        match (self.errors(), first) {
            (0 | 1, Some(message)) => message.to_owned(),
            (errors, Some(message)) => format!("{errors} errors, the first: {message}"),
            (_, None) => "it cannot be used".to_owned(),
        }
    }
}

fn is_error(diagnostic: &Value) -> bool {
    diagnostic.get("severity").and_then(Value::as_str) == Some("error")
}

impl Status {
    /// Returns what the metrics show of it, and how many builds are kept.
    pub(super) fn scrape(&self, retained: usize) -> Scrape {
        let second = |time: Option<Timestamp>| time.map(Timestamp::as_second);
        let is_true = |it: &Condition| (format!("{:?}", it.kind), it.status == Truth::True);
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

/// The types of conditions, in the order of the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Truth {
    /// It does.
    True,
    /// It does not.
    False,
}

/// Why a condition is as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
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
