//! Maps errors of other modules to API errors.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;

use axum::http::header;
use serde_json::Value;

use super::{ApiError, sentence};
use crate::changeset::{Rejection, RejectionKind};
use crate::classification::{ClassificationError, ClassificationFault, ExpansionFault};
use crate::diagnostic::Diagnostic;
use crate::git::RevisionFault;
use crate::http::request_schemas::failing_part;
use crate::http::types::{
    Age, ErrorKind, EvaluationFailure, FailedGroup, Finding, NotInEffect, RemoteWords,
    SchemaViolation,
};
use crate::impact::SurveyTooLarge;
use crate::reconcile::{LookupError, WriteError};
use crate::rule::EvaluationError;

impl From<Infallible> for ApiError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<SurveyTooLarge> for ApiError {
    /// Trying again does not help: there is too much to say.
    fn from(error: SurveyTooLarge) -> Self {
        let message = format!(
            "The comparison is too large: {error}. Compare fewer commits, or run `clade diff` where there is more memory."
        );
        Self::new(ErrorKind::PayloadTooLarge, message, Value::Null)
    }
}

/// No commit is live; every caller may know why.
fn no_snapshot(cause: &dyn Display) -> ApiError {
    let message =
        format!("No commit of the repository answers yet: {cause}; see /controller/status.");
    ApiError::new(ErrorKind::NoSnapshot, message, Value::Null).with_header(header::RETRY_AFTER, "5")
}

impl From<LookupError> for ApiError {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::NoSnapshot(cause) => no_snapshot(&cause),
            LookupError::Stale(age) => {
                let seconds = age.as_secs();
                let message = format!(
                    "The repository was not fetched for {seconds} s, longer than `--max-staleness` allows."
                );
                let details = Age { staleness_seconds: seconds };
                Self::new(ErrorKind::NoSnapshot, message, details)
                    .with_header(header::RETRY_AFTER, "5")
            }
            LookupError::NothingThen(time) => {
                let message = format!("No commit answered here at {time}.");
                Self::new(ErrorKind::UnknownCommit, message, time.to_string())
            }
            LookupError::Unknown(error) => {
                let message = match error.fault {
                    RevisionFault::Unknown | RevisionFault::NotFetched => {
                        format!("The repository has no commit `{}`.", error.revision)
                    }
                    RevisionFault::NotInShallowClone
                    | RevisionFault::NoCommits
                    | RevisionFault::Ambiguous => {
                        format!("{error}.")
                    }
                };
                Self::new(ErrorKind::UnknownCommit, message, error.revision)
            }
            LookupError::NotHereYet(commit) => {
                let message = format!("The commit {commit} is not fetched yet; try again soon.");
                Self::new(ErrorKind::CommitNotHereYet, message, commit.to_string())
                    .with_header(header::RETRY_AFTER, "1")
            }
            LookupError::Busy => {
                let message = "Too many requests wait for other commits to be built; try again.";
                Self::new(ErrorKind::Busy, message, Value::Null)
                    .with_header(header::RETRY_AFTER, "2")
            }
            LookupError::Rejected(rejected) => {
                let message = format!(
                    "The commit {} is not valid and never answers; see the `details` key.",
                    rejected.commit
                );
                Self::new(ErrorKind::InvalidCommit, message, findings(&rejected.diagnostics))
            }
            LookupError::Unverified(fault) => {
                let message = format!("{}, so it does not answer.", sentence(&fault.to_string()));
                let finding = Value::from(Finding::of_commit(fault.to_string()));
                Self::new(ErrorKind::InvalidCommit, message, vec![finding])
            }
            LookupError::Storage(error) => storage_failed(&error.to_string()),
            LookupError::Unreadable(reason) => storage_failed(&reason),
        }
    }
}

impl From<SchemaViolation> for ApiError {
    fn from(SchemaViolation { schema, submitted, error }: SchemaViolation) -> Self {
        Self::schema_violation(submitted, schema, error.into())
    }
}

impl From<Rejection> for ApiError {
    fn from(mut rejection: Rejection) -> Self {
        if rejection.kind == RejectionKind::SchemaViolation {
            let name = rejection.details.get("schema").and_then(Value::as_str);
            let body = rejection.details.get("submitted");
            let part = name.zip(body).map(|(name, body)| failing_part(name, body));
            if let (Some(part), Some(schema)) = (part, rejection.details.get_mut("schema")) {
                *schema = part;
            }
        }
        Self::new(rejection.kind.into(), rejection.message, rejection.details)
    }
}

impl From<RejectionKind> for ErrorKind {
    fn from(kind: RejectionKind) -> Self {
        match kind {
            RejectionKind::SchemaViolation => Self::SchemaViolation,
            RejectionKind::MalformedUuid => Self::MalformedUuid,
            RejectionKind::ConflictingIds => Self::ConflictingIds,
            RejectionKind::PermissionDenied | RejectionKind::PermissionUnknown => {
                Self::PermissionDenied
            }
            RejectionKind::NotFound => Self::NotFound,
            RejectionKind::WriteConflict => Self::WriteConflict,
            RejectionKind::UniquenessViolation => Self::UniquenessViolation,
            RejectionKind::MissingReferents => Self::MissingReferents,
            RejectionKind::MissingParent => Self::MissingParent,
            RejectionKind::InheritanceCycle => Self::InheritanceCycle,
            RejectionKind::UnreachableGroups => Self::UnreachableGroups,
            RejectionKind::RootRuleEdit => Self::RootRuleEdit,
            RejectionKind::RootGroup => Self::RootGroup,
            RejectionKind::ChildrenPresent => Self::ChildrenPresent,
            RejectionKind::EnvironmentInUse => Self::EnvironmentInUse,
            RejectionKind::InvalidCommit => Self::InvalidCommit,
        }
    }
}

impl From<WriteError> for ApiError {
    fn from(error: WriteError) -> Self {
        let message = format!("{}.", sentence(&error.to_string()));
        match error {
            WriteError::Rejected(rejection) => rejection.into(),
            WriteError::Lookup(error) => error.into(),
            WriteError::Invalid(diagnostics) => {
                let message =
                    "With this change the groups would not be valid; see the `details` key.";
                Self::new(ErrorKind::InvalidCommit, message, findings(&diagnostics))
            }
            WriteError::NotInEffect { commit, pinned } => {
                let details = NotInEffect { commit, pinned };
                Self::new(ErrorKind::WriteConflict, message, details)
            }
            WriteError::Storage(error) => storage_failed(&error.to_string()),
            WriteError::Blocked(_) | WriteError::Conflict(_) => {
                Self::new(ErrorKind::WriteConflict, message, Value::Null)
            }
            WriteError::RemoteRejected(words) => {
                let details = RemoteWords { remote: words };
                Self::new(ErrorKind::PermissionDenied, message, details)
            }
            WriteError::Unreachable(_) => {
                Self::new(ErrorKind::RemoteUnreachable, message, Value::Null)
                    .with_header(header::RETRY_AFTER, "5")
            }
            WriteError::Unknown(_) => Self::new(ErrorKind::WriteUnknown, message, Value::Null)
                .with_header(header::RETRY_AFTER, "5"),
            WriteError::Internal(_) => Self::internal(message),
        }
    }
}

impl From<ClassificationError> for ApiError {
    fn from(error: ClassificationError) -> Self {
        let message = match &error.cause {
            ClassificationFault::Rule(cause) => {
                format!("The rule of the group \"{}\" could not be evaluated: {cause}.", error.name)
            }
            ClassificationFault::Value { key, fault } => {
                format!("Facts could not be put into the value \"{key}\": {fault}.")
            }
        };
        let (pattern, path) = match &error.cause {
            ClassificationFault::Rule(EvaluationError::Steps { pattern }) => {
                tracing::error!(group.id = %error.group, pattern = %pattern, "a rule could not be evaluated");
                (Some(pattern.to_string()), None)
            }
            ClassificationFault::Rule(EvaluationError::Withheld { path })
            | ClassificationFault::Value { fault: ExpansionFault::Withheld { path }, .. } => {
                (None, Some(path.to_string()))
            }
            ClassificationFault::Value { fault: ExpansionFault::TooLong, key } => {
                tracing::error!(group.id = %error.group, %key, "the facts in values are too long");
                (None, None)
            }
        };
        let group = FailedGroup { id: error.group, name: error.name };
        let details = EvaluationFailure { group, pattern, path };
        Self::new(ErrorKind::RuleEvaluationError, message, details)
    }
}

/// Writes findings as details.
fn findings(diagnostics: &[Arc<Diagnostic>]) -> Vec<Value> {
    diagnostics.iter().map(|it| Finding::from(it.as_ref()).into()).collect()
}

/// What was asked for is not on disk, so it did not happen; or what is there cannot be read.
pub(in crate::http) fn storage_failed(reason: &str) -> ApiError {
    let message = format!("{}.", sentence(reason));
    ApiError::new(ErrorKind::StorageFailed, message, Value::Null)
        .with_header(header::RETRY_AFTER, "5")
}
