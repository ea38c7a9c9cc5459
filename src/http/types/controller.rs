//! What operators ask, and what forges are answered.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::violation::SchemaViolation;
use crate::model::CommitId;

/// The most characters of a reason.
const LONGEST_REASON: usize = 1000;

/// A commit to keep answering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PinRequest {
    /// A revision.
    pub commit: String,
    /// Why, for the journal and the status; at most 1,000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl PinRequest {
    /// Reads a body.
    pub(in crate::http) fn read(body: Value) -> Result<Self, SchemaViolation> {
        let reason = reason_of(&body, "Pin")?;
        let error = match body.get("commit") {
            Some(Value::String(commit)) => return Ok(Self { commit: commit.clone(), reason }),
            Some(_) => "({:commit (not (string? commit))})",
            None => "({:commit missing-required-key})",
        };
        Err(SchemaViolation { schema: "Pin", submitted: body, error: error.to_owned() })
    }
}

/// What an operator asks for, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct OperatorRequest {
    /// Why, for the journal; at most 1,000 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl OperatorRequest {
    /// Reads a body.
    pub(in crate::http) fn read(body: &Value) -> Result<Self, SchemaViolation> {
        Ok(Self { reason: reason_of(body, "OperatorRequest")? })
    }
}

/// Returns the reason in a body; an empty one is none.
fn reason_of(body: &Value, schema: &'static str) -> Result<Option<String>, SchemaViolation> {
    let violation = |error: String| SchemaViolation { schema, submitted: body.clone(), error };
    if !body.is_object() {
        return Err(violation("(not (map? the-body))".to_owned()));
    }
    match body.get("reason") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(reason)) if reason.chars().count() > LONGEST_REASON => {
            Err(violation(format!("`reason` has more than {LONGEST_REASON} characters")))
        }
        Some(Value::String(reason)) => {
            Ok(Some(reason.trim().to_owned()).filter(|it| !it.is_empty()))
        }
        Some(_) => Err(violation("({:reason (not (string? reason))})".to_owned())),
    }
}

/// Which commit is pinned; null if none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pinned {
    /// The commit.
    #[schema(required)]
    // Without this an answer that says nothing of it would be one that says null.
    #[serde(deserialize_with = "Option::deserialize")]
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
