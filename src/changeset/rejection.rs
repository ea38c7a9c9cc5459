//! Why a write is rejected.

use serde_json::{Map, Value};

/// Why a write is rejected, in the words of the API.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection {
    /// The kind of rejection.
    pub kind: RejectionKind,
    /// The message.
    pub message: String,
    /// What depends on the kind.
    pub details: Value,
}

/// What makes a write impossible. The API has a word and a status for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionKind {
    /// The submitted value does not conform to its schema.
    SchemaViolation,
    /// The id of a parent is not a UUID.
    MalformedUuid,
    /// The ids in URL and body differ.
    ConflictingIds,
    /// The client lacks the permission.
    PermissionDenied,
    /// The client lacks the permission by the groups that it may write: another commit may bring the group or parent among
    /// them.
    PermissionUnknown,
    /// There is no such resource.
    NotFound,
    /// The group changed meanwhile.
    WriteConflict,
    /// Another group has the id, or the name in its environment.
    UniquenessViolation,
    /// The catalogue of the environment lacks classes or parameters.
    MissingReferents,
    /// The parent does not exist.
    MissingParent,
    /// Groups inherit from each other in a circle.
    InheritanceCycle,
    /// Groups are not below the root group.
    UnreachableGroups,
    /// The rule of the root group is fixed.
    RootRuleEdit,
    /// The root group can be neither moved nor removed.
    RootGroup,
    /// The group has children.
    ChildrenPresent,
    /// Groups or a catalogue use the environment.
    EnvironmentInUse,
    /// The files cannot be changed so that the commit is valid.
    InvalidCommit,
}

impl RejectionKind {
    /// Returns whether other groups may allow the same write of the same client. What no groups give it the permission for
    /// is refused without a question to the remote.
    pub(crate) fn depends_on_groups(self) -> bool {
        match self {
            Self::SchemaViolation
            | Self::MalformedUuid
            | Self::ConflictingIds
            | Self::PermissionDenied
            | Self::RootRuleEdit => false,
            Self::NotFound
            | Self::PermissionUnknown
            | Self::WriteConflict
            | Self::UniquenessViolation
            | Self::MissingReferents
            | Self::MissingParent
            | Self::InheritanceCycle
            | Self::UnreachableGroups
            | Self::RootGroup
            | Self::ChildrenPresent
            | Self::EnvironmentInUse
            | Self::InvalidCommit => true,
        }
    }
}

impl RejectionKind {
    /// Returns whether the client lacks a permission.
    pub(crate) fn is_of_rights(self) -> bool {
        matches!(self, Self::PermissionDenied | Self::PermissionUnknown)
    }
}

impl Rejection {
    pub(super) fn new(
        kind: RejectionKind,
        message: impl Into<String>,
        details: impl Into<Value>,
    ) -> Self {
        Self { kind, message: message.into(), details: details.into() }
    }

    /// The submitted value does not conform to its schema.
    pub fn schema_violation(submitted: Value, schema: &str, error: Value) -> Self {
        let problem = match &error {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let message = format!(
            "The object(s) in your submitted request did not conform to the schema. The problem is: {problem}"
        );
        // Both can be large: they are moved.
        let details = [("submitted", submitted), ("schema", schema.into()), ("error", error)];
        let details: Map<String, Value> =
            details.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        Self::new(RejectionKind::SchemaViolation, message, details)
    }

    /// The rule of the root group is fixed.
    pub(super) fn root_rule(details: Value) -> Self {
        Self::new(RejectionKind::RootRuleEdit, "The root group's rule cannot be edited.", details)
    }

    /// The root group cannot be moved.
    pub(super) fn root_parent(details: Value) -> Self {
        Self::new(RejectionKind::RootGroup, "The root group is its own parent.", details)
    }

    /// The client lacks the permission for what it asks, such as `update classes`.
    pub fn denied(what: &str, details: impl Into<Value>) -> Self {
        let message = format!("Sorry, but you don't have permission to {what}.");
        Self::new(RejectionKind::PermissionDenied, message, details)
    }

    /// The rights of the client changed while its write waited.
    pub(crate) fn changed_rights() -> Self {
        let message = "What you may write changed while this write waited: send it again.";
        Self::new(RejectionKind::PermissionDenied, message, Value::Null)
    }

    pub(super) fn malformed_parent(text: &str) -> Self {
        let message = "The group's parent id is not a valid UUID.";
        Self::new(RejectionKind::MalformedUuid, message, text)
    }

    /// The adapter adds the path, which only it knows.
    pub(super) fn not_found() -> Self {
        let message = "The resource could not be found.";
        Self::new(RejectionKind::NotFound, message, Value::Null)
    }
}
