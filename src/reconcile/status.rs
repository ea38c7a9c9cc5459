//! The controller's own status document.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::model::CommitId;

/// The status document.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// What is watched.
    pub repository: Watched,
    /// The commit that answers.
    pub active: Option<Active>,
    /// The newest commit of the branch.
    pub observed: Option<Observed>,
    /// The newest commit, if it does not answer.
    pub last_failed: Option<LastFailed>,
    /// The commit an operator pinned.
    pub pinned: Option<CommitId>,
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
}

/// The newest commit of the branch.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Observed {
    /// Its id.
    pub commit: CommitId,
    /// When the branch was looked at last.
    pub fetched_at: Timestamp,
}

/// A commit that does not answer.
#[derive(Clone, Debug, Serialize)]
pub struct LastFailed {
    /// Its id.
    pub commit: CommitId,
    /// Where it failed: `load` or `check`.
    pub stage: &'static str,
    /// What is wrong with it.
    pub diagnostics: Vec<Value>,
}

/// How one thing stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `True` or `False`.
    pub status: &'static str,
    /// Why, in one word.
    pub reason: String,
    /// Why, in one line.
    pub message: String,
    /// When status or reason changed last.
    pub last_transition: Timestamp,
}
