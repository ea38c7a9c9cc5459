//! What operators ask, and what forges are answered.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::violation::SchemaViolation;
use crate::model::CommitId;

/// A commit to keep answering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PinRequest {
    /// A revision.
    pub commit: String,
}

impl PinRequest {
    /// Reads a body.
    pub(in crate::http) fn read(body: Value) -> Result<Self, SchemaViolation> {
        match body.get("commit").and_then(Value::as_str) {
            Some(commit) => Ok(Self { commit: commit.to_owned() }),
            None => Err(SchemaViolation {
                schema: "Pin",
                submitted: body,
                error: "({:commit missing-required-key})".to_owned(),
            }),
        }
    }
}

/// Which commit is pinned; null if none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pinned {
    /// The commit.
    #[schema(required)]
    pub pinned: Option<CommitId>,
}

/// The branch will be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Requested {
    /// Always true.
    pub requested: bool,
}

/// What a delivery of a webhook leads to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Delivery {
    /// The id that the forge gave it; null if it gave none.
    #[schema(required)]
    pub delivery: Option<String>,
    /// What it leads to.
    pub action: DeliveryAction,
}

/// What a delivery leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryAction {
    /// The branch is fetched.
    Fetch,
    /// It was delivered before.
    Duplicate,
    /// It is about something else.
    Ignored,
}
