//! Errors, all of one shape: `{"kind", "msg", "details"}`.

use std::convert::Infallible;

use axum::Json;
use axum::extract::OriginalUri;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::types::{
    Age, Error, ErrorKind, EvaluationFailure, FailedGroup, Finding, MalformedBody, NotInEffect,
    RemoteWords, SchemaViolation,
};
use crate::changeset::Rejection;
use crate::classification::{
    ClassificationError, Conflicts, conflict_details, conflict_message, conflict_report,
};
use crate::diagnostic::Diagnostic;
use crate::hierarchy::Hierarchy;
use crate::reconcile::{LookupError, StorageError, WriteError};

/// An error as clients see it.
///
/// Boxed, since most results that carry it are small.
#[derive(Debug)]
pub(super) struct ApiError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    details: Value,
    header: Option<(HeaderName, HeaderValue)>,
}

impl ApiError {
    pub(super) fn new(
        kind: ErrorKind,
        message: impl Into<String>,
        details: impl Into<Value>,
    ) -> Self {
        let (message, details) = (message.into(), details.into());
        Self(Box::new(Inner { kind, message, details, header: None }))
    }

    /// Adds a header, which must be one.
    pub(super) fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        self.0.header = HeaderValue::from_str(value).ok().map(|value| (name, value));
        self
    }

    /// Clients are told the path as they asked for it, with the prefix of the API.
    pub(super) fn not_found(OriginalUri(uri): &OriginalUri) -> Self {
        let message = "The resource could not be found.";
        Self::new(ErrorKind::NotFound, message, uri.path())
    }

    /// The node has not checked in.
    pub(super) fn unknown_node(name: &str, uri: &OriginalUri) -> Self {
        let message = format!(
            "The node `{name}` is not known to this daemon: it has not checked in here. Send its facts along with POST, or ask the daemon that classified it."
        );
        Self::not_known(message, uri)
    }

    /// The node has checked in without facts, and what it gets depends on them.
    pub(super) fn unknown_facts(name: &str, uri: &OriginalUri) -> Self {
        let message = format!(
            "The facts of the node `{name}` are not known: it has checked in without facts, and rules read facts. Send its facts along with POST, or ask again after a check-in with facts."
        );
        Self::not_known(message, uri)
    }

    /// No facts of a node are known, and `--enc-facts required` demands them.
    pub(super) fn facts_required(name: &str, uri: &OriginalUri) -> Self {
        let message = format!(
            "No facts of the node `{name}` are known, and `--enc-facts required` does not let its name alone be enough. Send its facts along with `POST /enc/{name}`, or ask again after a check-in with facts."
        );
        Self::not_known(message, uri)
    }

    /// What a request names is not known, as the message says.
    pub(super) fn not_known(message: String, OriginalUri(uri): &OriginalUri) -> Self {
        Self::new(ErrorKind::NotFound, message, uri.path())
    }

    pub(super) fn method_not_allowed(method: &str, path: &str) -> Self {
        let message = format!("The method {method} is not allowed for this resource.");
        Self::new(ErrorKind::MethodNotAllowed, message, path)
    }

    pub(super) fn malformed_request(body: &str, error: &str) -> Self {
        Self::new(
            ErrorKind::MalformedRequest,
            "The body of your request is not valid JSON.",
            MalformedBody { body: body.to_owned(), error: error.to_owned() },
        )
    }

    pub(super) fn schema_violation(submitted: &Value, schema: &str, error: &Value) -> Self {
        Rejection::schema_violation(submitted, schema, error).into()
    }

    pub(super) fn malformed_uuid(text: &str) -> Self {
        let message = "The group id in the request's URI is not a valid UUID.";
        Self::new(ErrorKind::MalformedUuid, message, text)
    }

    pub(super) fn malformed_number(name: &str, text: &str) -> Self {
        let message = format!("The parameter `{name}` must be a whole number from 0.");
        Self::new(ErrorKind::MalformedNumber, message, text)
    }

    pub(super) fn illegal_count(name: &str, text: &str) -> Self {
        let message = format!("The parameter `{name}` must not be negative.");
        Self::new(ErrorKind::IllegalCount, message, text)
    }

    pub(super) fn payload_too_large(limit: usize) -> Self {
        let message = format!("The body of your request is larger than {limit} bytes.");
        Self::new(ErrorKind::PayloadTooLarge, message, Value::Null)
            .with_header(header::CONNECTION, "close")
    }

    /// The body has too many values to be read.
    pub(super) fn too_many_values(most: usize) -> Self {
        let message = format!("The body of your request has more than {most} values.");
        Self::new(ErrorKind::PayloadTooLarge, message, Value::Null)
    }

    /// The body comes too slowly.
    pub(super) fn request_timeout() -> Self {
        let message = "The body of your request came too slowly.";
        Self::new(ErrorKind::RequestTimeout, message, Value::Null)
            .with_header(header::CONNECTION, "close")
    }

    /// Every connection is being worked on.
    pub(super) fn busy() -> Self {
        let message = "The daemon works on as many requests as it can; try again.";
        Self::new(ErrorKind::Busy, message, Value::Null).with_header(header::RETRY_AFTER, "1")
    }

    /// What `PuppetDB` knows is needed for the answer: asking again may help, and no answer is right
    /// without it.
    pub(super) fn puppetdb_unreachable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::PuppetdbUnreachable, message, Value::Null)
            .with_header(header::RETRY_AFTER, "5")
    }

    pub(super) fn status(&self) -> StatusCode {
        self.0.kind.status()
    }

    pub(super) fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// No credentials, or unknown ones.
    pub(super) fn unauthenticated() -> Self {
        let message = "Route requires authentication: show a token or a client certificate.";
        Self::new(ErrorKind::UserUnauthenticated, message, Value::Null)
            .with_header(header::WWW_AUTHENTICATE, "Bearer")
    }

    /// A webhook is not signed with a secret of ours.
    pub(super) fn unsigned() -> Self {
        let message =
            "The signature of the delivery is missing or not made with a configured secret.";
        Self::new(ErrorKind::UserUnauthenticated, message, Value::Null)
    }

    pub(super) fn permission_denied(name: &str, role: &str) -> Self {
        let message = format!("`{name}` does not have the role `{role}` that this route needs.");
        Self::new(ErrorKind::PermissionDenied, message, role)
    }

    /// The request names a host that this daemon does not have.
    pub(super) fn foreign_host(host: &str) -> Self {
        let shown: String = host.chars().filter(|it| !it.is_control()).take(255).collect();
        let message = format!(
            "The request names the host `{shown}`, which is not one of this daemon: use `localhost`, or add the host to `--allowed-hosts`."
        );
        Self::new(ErrorKind::PermissionDenied, message, shown)
    }

    /// The page of another site had a browser send the request.
    pub(super) fn cross_site() -> Self {
        let message = "The request comes from a page of another site: show a token, or send it from outside of a browser.";
        Self::new(ErrorKind::PermissionDenied, message, Value::Null)
    }

    /// A browser sends the body as a form.
    pub(super) fn form(content_type: &str) -> Self {
        let message = "A browser must send the body with the content type `application/json`.";
        Self::new(ErrorKind::PermissionDenied, message, content_type)
    }

    /// The answer to every write: groups are changed by commits.
    pub(super) fn read_only(message: String) -> Self {
        Self::new(ErrorKind::ReadOnly, message, Value::Null)
    }

    pub(super) fn conflict(hierarchy: &Hierarchy, conflicts: &Conflicts<'_>) -> Self {
        Self::new(
            ErrorKind::ClassificationConflict,
            conflict_message(hierarchy, conflicts),
            conflict_details(hierarchy, conflicts),
        )
    }

    /// A conflict for clients that show the message alone, such as an ENC or Hiera.
    pub(super) fn conflict_in_words(
        hierarchy: &Hierarchy,
        conflicts: &Conflicts<'_>,
        node: &str,
    ) -> Self {
        let mut error = Self::conflict(hierarchy, conflicts);
        error.0.message = conflict_report(hierarchy, conflicts, node);
        error
    }

    /// What was asked for is not on disk, so it did not happen.
    fn storage_failed(error: &StorageError) -> Self {
        let message = format!("{}.", sentence(&error.to_string()));
        Self::new(ErrorKind::StorageFailed, message, Value::Null)
            .with_header(header::RETRY_AFTER, "5")
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::ApplicationError, message, Value::Null)
    }
}

impl From<Infallible> for ApiError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<LookupError> for ApiError {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::NoSnapshot => {
                let message = "No commit of the repository answers yet; see /controller/status.";
                Self::new(ErrorKind::NoSnapshot, message, Value::Null)
                    .with_header(header::RETRY_AFTER, "5")
            }
            LookupError::Stale(age) => {
                let seconds = age.as_secs();
                let message = format!(
                    "The repository was last seen {seconds} s ago, longer than answers may be old."
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
                let message = format!("The repository has no commit `{}`.", error.revision);
                Self::new(ErrorKind::UnknownCommit, message, error.revision)
            }
            LookupError::NotHereYet(commit) => {
                let message = format!("The commit {commit} is not here yet; try again soon.");
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
            LookupError::Storage(error) => Self::storage_failed(&error),
            LookupError::Unreadable(message) => Self::internal(message),
        }
    }
}

impl From<SchemaViolation> for ApiError {
    fn from(SchemaViolation { schema, submitted, error }: SchemaViolation) -> Self {
        Self::schema_violation(&submitted, schema, &error.into())
    }
}

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        let Some(kind) = ErrorKind::of(rejection.kind) else {
            return Self::internal(rejection.message);
        };
        Self::new(kind, rejection.message, rejection.details)
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
            WriteError::Storage(error) => Self::storage_failed(&error),
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

/// Begins a message with a capital letter, as all of this API do.
pub(super) fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

impl From<ClassificationError> for ApiError {
    fn from(error: ClassificationError) -> Self {
        let message = format!(
            "The rule of the group \"{}\" could not be evaluated: {}.",
            error.name, error.cause
        );
        tracing::error!(group.id = %error.group, pattern = %error.cause.pattern, "a rule could not be evaluated");
        let details = EvaluationFailure {
            group: FailedGroup { id: error.group, name: error.name },
            pattern: error.cause.pattern.to_string(),
        };
        Self::new(ErrorKind::RuleEvaluationError, message, details)
    }
}

/// Writes findings as details.
fn findings(diagnostics: &[Diagnostic]) -> Vec<Value> {
    diagnostics.iter().map(|it| Finding::from(it).into()).collect()
}

impl From<ApiError> for Error {
    fn from(error: ApiError) -> Self {
        let Inner { kind, message, details, .. } = *error.0;
        Self { kind: kind.as_str().into(), msg: message, details }
    }
}

impl IntoResponse for ApiError {
    fn into_response(mut self) -> Response {
        let header = self.0.header.take();
        let mut response = (self.status(), Json(Error::from(self))).into_response();
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}
