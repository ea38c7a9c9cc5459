//! Why a write is rejected.

use serde_json::{Value, json};

/// Why a write is rejected, in the words of the API.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection {
    /// What sort of rejection.
    pub status: RejectionStatus,
    /// The kind of error.
    pub kind: &'static str,
    /// The message.
    pub message: String,
    /// What depends on the kind.
    pub details: Value,
}

/// The classes of rejections, named as HTTP names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionStatus {
    /// The request is malformed.
    BadRequest,
    /// The client lacks the permission.
    Forbidden,
    /// What the request names does not exist.
    NotFound,
    /// The request relies on a state that has changed.
    Conflict,
    /// The request does not fit the present state.
    Unprocessable,
}

impl Rejection {
    pub(super) fn new(
        status: RejectionStatus,
        kind: &'static str,
        message: impl Into<String>,
        details: impl Into<Value>,
    ) -> Self {
        Self { status, kind, message: message.into(), details: details.into() }
    }

    pub(super) fn unprocessable(
        kind: &'static str,
        message: impl Into<String>,
        details: impl Into<Value>,
    ) -> Self {
        Self::new(RejectionStatus::Unprocessable, kind, message, details)
    }

    /// The submitted value does not conform to its schema.
    pub fn schema_violation(submitted: &Value, schema: &str, error: &Value) -> Self {
        let problem = match error {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let message = format!(
            "The object(s) in your submitted request did not conform to the schema. The problem is: {problem}"
        );
        let details = json!({"submitted": submitted, "schema": schema, "error": error});
        Self::new(RejectionStatus::BadRequest, "schema-violation", message, details)
    }

    /// The client lacks the permission for what it asks, such as `update classes`.
    pub fn denied(what: &str, details: impl Into<Value>) -> Self {
        let message = format!("Sorry, but you don't have permission to {what}.");
        Self::new(RejectionStatus::Forbidden, "permission-denied", message, details)
    }

    pub(super) fn malformed_parent(text: &str) -> Self {
        let message = "The group's parent id is not a valid UUID.";
        Self::new(RejectionStatus::BadRequest, "malformed-uuid", message, text)
    }

    /// The adapter adds the path, which only it knows.
    pub(super) fn not_found() -> Self {
        let message = "The resource could not be found.";
        Self::new(RejectionStatus::NotFound, "not-found", message, Value::Null)
    }
}
