//! Check-ins.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Error;
use crate::model::CommitId;

/// A node that has checked in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CheckIn {
    /// Its certname.
    pub name: String,
    /// Its last check-in; empty where that cannot be read.
    #[schema(required)]
    #[serde(default)]
    pub check_ins: Vec<CheckInEntry>,
    /// Which run of the agent the last one was for, as the agent says.
    #[schema(required)]
    pub transaction_uuid: Option<String>,
    /// Its facts, with `facts=true`; absent where they are not known.
    #[schema(value_type = Object, required = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<Map<String, Value>>,
    /// Its trusted data, with `facts=true`; absent where they may be lost.
    #[schema(value_type = Object, required = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<Map<String, Value>>,
    /// Why this check-in cannot be read; then `check_ins` is empty.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

/// A check-in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CheckInEntry {
    /// When.
    pub time: Timestamp,
    /// What the commit that answers now gives the node: `environment`, `classes`, `variables`, and
    /// `config_data` if there is any; absent while the node has none.
    #[schema(value_type = Object, required = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classification: Option<Value>,
    /// The groups that match, by id, with their conditions evaluated.
    #[schema(value_type = Object, required)]
    #[serde(default)]
    pub explanation: Value,
    /// Why the explanation is not shown, such as that the facts are not known; then it is empty.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
    /// Which run of the agent it was for.
    #[schema(required)]
    pub transaction_uuid: Option<String>,
    /// The commit that answered the node.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
}
