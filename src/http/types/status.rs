//! The status of the controller.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Finding, Replica, Stage, StoreInfo, WebhookDeliveries};
use crate::model::CommitId;
use crate::reconcile::{self, FailureCause};

/// The status of the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The version of the daemon.
    pub version: String,
    /// When it started.
    pub started_at: Timestamp,
    /// What is followed.
    pub repository: Repository,
    /// The commit that answers.
    #[schema(required)]
    pub active: Option<ActiveCommit>,
    /// The newest commit of the branch.
    #[schema(required)]
    pub observed: Option<ObservedCommit>,
    /// How fetching goes.
    pub remote: Remote,
    /// The newest commit, if it does not answer.
    #[schema(required)]
    pub last_failed: Option<FailedCommit>,
    /// The commit that an operator pinned.
    #[schema(required)]
    pub pinned: Option<CommitId>,
    /// Who pinned it, when, and why; null if none is pinned.
    #[schema(required)]
    #[serde(default)]
    pub pinned_by: Option<PinnedBy>,
    /// Whose commits may answer: `off`, `head` or `range`.
    #[schema(required)]
    #[serde(default)]
    pub verification: String,
    /// What holds; negative conditions are present only while they are true.
    pub conditions: Vec<Condition>,
    /// This daemon, and those that share its store, each with the commit that answers there.
    #[schema(required)]
    #[serde(default)]
    pub replicas: Vec<Replica>,
    /// The store of check-ins.
    #[schema(required)]
    #[serde(default)]
    pub store: Option<StoreInfo>,
    /// The deliveries of webhooks since the daemon started, by forge and by how they ended.
    #[schema(required)]
    #[serde(default)]
    pub webhooks: Vec<WebhookDeliveries>,
}

/// The repository that is followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Repository {
    /// Where it is, without credentials.
    pub url: String,
    /// The branch; null for a detached HEAD.
    #[schema(required)]
    pub branch: Option<String>,
    /// The directory of the groups.
    pub path: String,
}

/// The commit that answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActiveCommit {
    /// Its id.
    pub commit: CommitId,
    /// The name of its author.
    pub author: String,
    /// When it was made, by its committer's clock.
    pub time: Timestamp,
    /// The first line of its message.
    pub subject: String,
    /// Since when it answers here.
    pub activated_at: Timestamp,
    /// How many groups it has, the root group counted.
    pub groups: usize,
    /// What brought it here: `startup`, `poll`, `webhook`, `manual`, `retry` or `write`.
    pub trigger: String,
}

/// The newest commit of the branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ObservedCommit {
    /// Its id.
    pub commit: CommitId,
    /// When the branch was fetched last.
    pub fetched_at: Timestamp,
}

/// How fetching goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Remote {
    /// When a fetch began last.
    #[schema(required)]
    pub last_attempt: Option<Timestamp>,
    /// When one succeeded last.
    #[schema(required)]
    pub last_contact: Option<Timestamp>,
    /// When the branch moved last.
    #[schema(required)]
    pub last_change: Option<Timestamp>,
    /// For how many seconds the branch was not seen, across restarts; since the start if it never was. Older
    /// versions answered null there.
    #[schema(required)]
    pub staleness_seconds: Option<u64>,
    /// How many fetches failed in a row.
    pub consecutive_failures: u32,
    /// How the last one failed.
    #[schema(required)]
    pub error: Option<String>,
    /// The commits that webhooks named and that are not fetched yet.
    #[schema(required)]
    #[serde(default)]
    pub expected: Vec<CommitId>,
}

/// A commit that does not answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailedCommit {
    /// Its id.
    pub commit: CommitId,
    /// Where it failed.
    pub stage: Stage,
    /// What is wrong with it.
    pub diagnostics: Vec<Finding>,
}

/// Who pinned a commit, when, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PinnedBy {
    /// The name of the token or certificate; null where access is open.
    #[schema(required)]
    pub actor: Option<String>,
    /// The reason that was given.
    #[schema(required)]
    pub reason: Option<String>,
    /// When.
    pub since: Timestamp,
}

/// A condition, as Kubernetes has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = StatusCondition)]
pub struct Condition {
    /// What it is about; a newer daemon may have types that this program does not know.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, in one word.
    pub reason: String,
    /// Why, in one line.
    pub message: String,
    /// When status or reason changed last.
    pub last_transition: Timestamp,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum ConditionStatus {
    /// It does.
    True,
    /// It does not.
    False,
    /// It cannot be told, or the program that reads the status does not know the word.
    #[serde(other)]
    Unknown,
}

impl From<reconcile::Status> for Status {
    fn from(status: reconcile::Status) -> Self {
        let reconcile::Status { repository, remote, .. } = status;
        Self {
            version: status.version.to_owned(),
            started_at: status.started_at,
            repository: Repository {
                url: repository.url,
                branch: repository.branch,
                path: repository.path,
            },
            active: status.active.map(ActiveCommit::from),
            observed: status
                .observed
                .map(|it| ObservedCommit { commit: it.commit, fetched_at: it.fetched_at }),
            remote: Remote {
                last_attempt: remote.last_attempt,
                last_contact: remote.last_contact,
                last_change: remote.last_change,
                staleness_seconds: Some(remote.staleness_seconds),
                consecutive_failures: remote.consecutive_failures,
                error: remote.error,
                expected: remote.expected,
            },
            last_failed: status.last_failed.as_ref().map(FailedCommit::from),
            pinned: status.pin.as_ref().map(|it| it.commit),
            pinned_by: status.pin.map(PinnedBy::from),
            verification: status.verification.to_owned(),
            conditions: status.conditions.into_iter().map(Condition::from).collect(),
            replicas: Vec::new(),
            store: None,
            webhooks: Vec::new(),
        }
    }
}

impl From<&reconcile::FailedCommit> for FailedCommit {
    fn from(failed: &reconcile::FailedCommit) -> Self {
        let diagnostics = match &failed.cause {
            FailureCause::Commit(problem) => vec![Finding::of_commit(problem.clone())],
            FailureCause::Findings(rejected) => {
                rejected.diagnostics.iter().map(|it| Finding::from(it.as_ref())).collect()
            }
        };
        Self { commit: failed.commit, stage: failed.stage.into(), diagnostics }
    }
}

impl From<reconcile::Pin> for PinnedBy {
    fn from(reconcile::Pin { since, by, .. }: reconcile::Pin) -> Self {
        Self { actor: by.actor, reason: by.reason, since }
    }
}

impl From<reconcile::ActiveCommit> for ActiveCommit {
    fn from(active: reconcile::ActiveCommit) -> Self {
        Self {
            commit: active.commit,
            author: active.author,
            time: active.time,
            subject: active.subject,
            activated_at: active.activated_at,
            groups: active.groups,
            trigger: active.trigger.as_str().to_owned(),
        }
    }
}

impl From<reconcile::Condition> for Condition {
    fn from(condition: reconcile::Condition) -> Self {
        Self {
            // The names of the variants are the words of the wire.
            kind: format!("{:?}", condition.kind),
            status: match condition.status {
                reconcile::ConditionStatus::True => ConditionStatus::True,
                reconcile::ConditionStatus::False => ConditionStatus::False,
            },
            reason: format!("{:?}", condition.reason),
            message: condition.message,
            last_transition: condition.last_transition,
        }
    }
}
