//! How the answers of nodes changed.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::StoredGroup;
use crate::answer;
use crate::git::CommitInfo;
use crate::model::CommitId;
use crate::reconcile::CommittedChange;
use crate::store;

/// A change of what a node got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StoredChange {
    /// When the node first got the new answer.
    pub time: Timestamp,
    /// The commit that gave it.
    pub commit: ChangeCommit,
    /// The commit that answered the node before; null at the first answer.
    #[schema(required)]
    pub commit_before: Option<CommitId>,
    /// What changed the answer: `commit`, `facts`, `both`, or `first` for the first answer.
    #[schema(value_type = String)]
    pub cause: answer::ChangeCause,
    /// The facts and trusted data that the rules mention, and that changed.
    pub facts: Vec<FactChange>,
    /// The values that changed.
    pub changes: Vec<AnswerChange>,
}

/// The commit that gave an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangeCommit {
    /// Its id.
    pub id: CommitId,
    /// The name of its author; absent if the repository does not have the commit any more.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The first line of its message; absent if the repository does not have the commit any more.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// When it was made, by its committer's clock; absent if the repository does not have the commit any more.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
}

/// A fact, or an item of the trusted data, that changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FactChange {
    /// Such as `os.family` or `trusted.extensions.pp_role`.
    pub path: String,
    /// The value before; null if there was none.
    #[schema(required)]
    pub before: Option<Value>,
    /// The value afterwards; null if there is none.
    #[schema(required)]
    pub after: Option<Value>,
}

/// A value of the answer that changed, or that another group defines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AnswerChange {
    /// Such as `classes.apache.port`, `variables.tier`, `groups.Webservers` or `environment`; `state`,
    /// `conflict` and `error` where these change.
    pub key: String,
    /// The value before; null if there was none.
    #[schema(required)]
    pub before: Option<Value>,
    /// The value afterwards; null if there is none.
    #[schema(required)]
    pub after: Option<Value>,
    /// The group that defines the value afterwards, or did before if the value is gone; null for the node's
    /// own file, and for what no single group defines.
    #[schema(required)]
    pub because: Option<StoredGroup>,
}

impl AnswerChange {
    /// Returns the value before as people read it: of a conflict or an error, what it says.
    pub fn shown_before(&self) -> Option<&Value> {
        self.shown(self.before.as_ref())
    }

    /// Returns the value afterwards as people read it.
    pub fn shown_after(&self) -> Option<&Value> {
        self.shown(self.after.as_ref())
    }

    fn shown<'v>(&self, value: Option<&'v Value>) -> Option<&'v Value> {
        let words = match self.key.as_str() {
            "conflict" => value?.get("summary"),
            "error" => value?.get("message"),
            _ => None,
        };
        words.or(value)
    }
}

impl StoredChange {
    /// Writes a change. What is known of its commit is added by [`Self::describe`].
    pub(in crate::http) fn of(change: store::StoredChange) -> Self {
        let changes = answer::changes(change.before.as_ref(), &change.after);
        Self {
            time: change.time,
            commit: ChangeCommit { id: change.commit, author: None, subject: None, time: None },
            commit_before: change.commit_before,
            cause: change.cause,
            facts: change.facts.into_iter().map(FactChange::from).collect(),
            changes: changes.into_iter().map(AnswerChange::from).collect(),
        }
    }

    /// Adds what is known of the commit.
    pub(in crate::http) fn describe(&mut self, commits: &BTreeMap<CommitId, CommitInfo>) {
        let Some(info) = commits.get(&self.commit.id) else { return };
        self.commit = ChangeCommit {
            id: info.id,
            author: Some(info.author.clone()),
            subject: Some(info.subject.clone()),
            time: Some(info.time),
        };
    }
}

impl From<CommittedChange> for StoredChange {
    fn from(change: CommittedChange) -> Self {
        let CommittedChange { commit, commit_before, changes, is_boundary: _ } = change;
        Self {
            time: commit.time,
            commit: ChangeCommit {
                id: commit.id,
                author: Some(commit.author),
                subject: Some(commit.subject),
                time: Some(commit.time),
            },
            commit_before,
            cause: match commit_before {
                Some(_) => answer::ChangeCause::Commit,
                None => answer::ChangeCause::First,
            },
            facts: Vec::new(),
            changes: changes.into_iter().map(AnswerChange::from).collect(),
        }
    }
}

impl From<store::FactChange> for FactChange {
    fn from(store::FactChange { path, before, after }: store::FactChange) -> Self {
        Self { path, before, after }
    }
}

impl From<answer::AnswerChange> for AnswerChange {
    fn from(change: answer::AnswerChange) -> Self {
        let answer::AnswerChange { key, before, after, because } = change;
        Self { key, before, after, because: because.map(StoredGroup::from) }
    }
}
