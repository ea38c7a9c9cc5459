//! Writes that name nodes, and writes that wait for review.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::violation::SchemaViolation;
use crate::changeset::disallowed_keys;
use crate::model::{CommitId, EnvironmentName, GroupId, GroupName};

/// The nodes that a group pins or unpins; the query parameter `nodes` may name them instead.
///
/// One node may stand alone.
#[derive(Clone, Debug, PartialEq, Eq, ToSchema)]
pub struct NodesRequest {
    /// Their certnames.
    pub nodes: Vec<String>,
}

impl NodesRequest {
    /// Reads a body; none if it has no nodes.
    pub(in crate::http) fn read(body: &Value) -> Result<Option<Self>, SchemaViolation> {
        let violation = |error: &str| {
            let (submitted, error) = (body.clone(), error.to_owned());
            Err(SchemaViolation { schema: "Nodes", submitted, error })
        };
        let Value::Object(fields) = body else { return violation("(not (map? the-body))") };
        let unknown = fields.keys().map(String::as_str).filter(|key| *key != "nodes");
        if let Some(error) = disallowed_keys(unknown) {
            return violation(&error);
        }
        let nodes = match fields.get("nodes") {
            None => return Ok(None),
            Some(Value::String(node)) => Some(vec![node.clone()]),
            Some(Value::Array(nodes)) => {
                nodes.iter().map(|it| it.as_str().map(str::to_owned)).collect()
            }
            Some(_) => return violation("([:nodes (not (sequential? the-value))])"),
        };
        match nodes {
            Some(nodes) => Ok(Some(Self { nodes })),
            None => violation("([:nodes (not (every? string? the-value))])"),
        }
    }
}

/// A change that waits for review.
///
/// Clients of Puppet Enterprise read `kind` and `msg` of every answer but 200, 201, 204 and 303.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Proposed {
    /// `proposed`.
    pub kind: ProposedKind,
    /// What happens next, for people.
    pub msg: String,
    /// The branch, the commit and the pull request.
    pub details: ProposedBranch,
    /// The branch to review.
    pub branch: String,
    /// The commit of the change.
    pub commit: CommitId,
    /// Where to open a pull request; null where that is not known.
    #[schema(required)]
    pub url: Option<String>,
}

/// The one kind of a change that waits for review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProposedKind {
    /// It waits for review.
    Proposed,
}

/// Where a change waits for review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProposedBranch {
    /// The branch to review.
    pub branch: String,
    /// The commit of the change.
    pub commit: CommitId,
    /// Where to open a pull request; null where that is not known.
    #[schema(required)]
    pub url: Option<String>,
}

impl From<ProposedBranch> for Proposed {
    fn from(details: ProposedBranch) -> Self {
        let ProposedBranch { branch, commit, url } = details.clone();
        let place = match &url {
            Some(url) => format!(": {url}"),
            None => format!(" on the branch {branch}"),
        };
        let msg =
            format!("The change waits for review{place}; nothing is changed until it is merged.");
        Self { kind: ProposedKind::Proposed, msg, details, branch, commit, url }
    }
}

/// The nodes that were unpinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Unpinned {
    /// Those that were pinned.
    pub nodes: Vec<UnpinnedNode>,
}

/// A node that was unpinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnpinnedNode {
    /// Its certname.
    pub name: String,
    /// The groups that pinned it.
    pub groups: Vec<UnpinnedGroup>,
}

/// A group that pinned a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnpinnedGroup {
    /// Its id.
    pub id: GroupId,
    /// Its name.
    pub name: GroupName,
    /// Its environment.
    pub environment: EnvironmentName,
}
