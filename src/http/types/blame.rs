//! Where the values of a node came from.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::forge::MergedPullRequest;
use crate::git::CommitInfo;
use crate::model::{CommitId, GroupId};
use crate::reconcile;

/// A value that a node gets, and the commit after which it first came out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BlamedValue {
    /// Such as `classes.apache.port`, `variables.tier`, `groups.Webservers` or `environment`.
    pub key: String,
    /// The value; the name of a group; an empty object for a class.
    pub value: Value,
    /// The name of the group that defines it; null for the node's own file.
    #[schema(required)]
    pub group: Option<String>,
    /// The id of that group.
    #[schema(required)]
    pub group_id: Option<GroupId>,
    /// The file that defines it; null for what no file says.
    #[schema(required)]
    pub file: Option<String>,
    /// The line there.
    #[schema(required)]
    pub line: Option<u32>,
    /// The commit after which the node, with the facts it has now, first got the value.
    pub commit: BlamedCommit,
    /// When that commit was made, by its committer's clock.
    pub since: Timestamp,
    /// Whether that is only the oldest commit that is known: the value may be older.
    #[serde(default)]
    pub boundary: bool,
}

/// A commit that a value came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlamedCommit {
    /// Its id.
    pub id: CommitId,
    /// The name of its author.
    pub author: String,
    /// When it was made, by its committer's clock.
    pub time: Timestamp,
    /// The first line of its message.
    pub subject: String,
    /// The pull request that it came from, if its message names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<BlamedPullRequest>,
}

/// A pull request, or merge request, that a commit came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlamedPullRequest {
    /// Its number.
    pub number: u64,
    /// Its page, if the forge is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl From<reconcile::BlamedValue> for BlamedValue {
    fn from(blamed: reconcile::BlamedValue) -> Self {
        let (group, group_id) = blamed.group.map(|it| (it.name, it.id)).unzip();
        let (file, line) = blamed.place.map(|(file, line)| (file.to_string(), line)).unzip();
        let (commit, pull_request) = (blamed.commit, blamed.pull_request);
        Self {
            key: blamed.key,
            value: blamed.value,
            group,
            group_id,
            file,
            line,
            since: commit.time,
            commit: (commit, pull_request).into(),
            boundary: blamed.is_boundary,
        }
    }
}

impl From<(CommitInfo, Option<MergedPullRequest>)> for BlamedCommit {
    fn from((commit, pull_request): (CommitInfo, Option<MergedPullRequest>)) -> Self {
        let pull_request =
            pull_request.map(|it| BlamedPullRequest { number: it.number, url: it.url });
        Self {
            id: commit.id,
            author: commit.author,
            time: commit.time,
            subject: commit.subject,
            pull_request,
        }
    }
}
