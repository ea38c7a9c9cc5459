//! What a change does to nodes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::model::CommitId;

/// What a change does to the nodes that have checked in. `schemas/diff.json` in Clade's repository has the whole schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Diff {
    /// What is compared with.
    pub base: DiffSide,
    /// What is compared.
    pub head: DiffSide,
    /// `summary`, `groups`, `node_files` and `changes`, as `impact` writes them.
    #[serde(flatten)]
    #[schema(value_type = Impact)]
    pub impact: Map<String, Value>,
    /// The nodes that were not compared, and why.
    pub unreadable: Vec<String>,
}

/// What `impact` writes of a comparison.
#[derive(ToSchema)]
#[expect(dead_code, reason = "`impact` writes these fields; this says which they are")]
pub(super) struct Impact {
    /// How many nodes change, and how.
    #[schema(value_type = Object)]
    summary: (),
    /// The groups that differ.
    #[schema(value_type = Vec<Object>)]
    groups: (),
    /// The files of nodes that differ.
    #[schema(value_type = Vec<Object>)]
    node_files: (),
    /// What changes for which nodes, and because of what.
    #[schema(value_type = Vec<Object>)]
    changes: (),
}

/// A side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DiffSide {
    /// What was asked for.
    pub revision: String,
    /// The commit; null for a working tree.
    #[schema(required)]
    pub commit: Option<CommitId>,
}
