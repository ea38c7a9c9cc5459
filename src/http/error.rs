//! Errors, all of one shape: `{"kind", "msg", "details"}`.

mod conversions;

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::access::{LoginWays, Role};
use super::original_uri::OriginalUri;
use super::types::{Error, ErrorKind, MalformedBody};
use crate::changeset::Rejection;
use crate::classification::{
    Conflicts, SEE_DETAILS, conflict_details, conflict_message, conflict_report,
};
use crate::hierarchy::Hierarchy;
use crate::masking::Masks;

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
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl ApiError {
    pub(super) fn new(
        kind: ErrorKind,
        message: impl Into<String>,
        details: impl Into<Value>,
    ) -> Self {
        let (message, details) = (message.into(), details.into());
        Self(Box::new(Inner { kind, message, details, headers: Vec::new() }))
    }

    /// Leaves out what an error shows of groups, for a caller who may not read them: findings, and values that are
    /// inherited.
    pub(super) fn without_groups(self) -> Self {
        let kind = self.0.kind;
        if !matches!(kind, ErrorKind::InvalidCommit | ErrorKind::MissingReferents) {
            return self;
        }
        let message = "The groups are not valid, or would not be with this change. What is wrong with them is only \
                       shown to callers with the role `read`.";
        Self::new(kind, message, Value::Array(Vec::new()))
    }

    /// Adds a header, which must be one.
    pub(super) fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        self.0.headers.extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
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
            "The node `{name}` is not known to this daemon: it has not checked in here. Check its name, send its facts along (`POST`, or `--facts FILE` of a command), or ask the daemon that classified it."
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
            "No facts of the node `{name}` are known, and `--enc-facts required` forbids a classification by name alone. Send its facts along with `POST /enc/{name}`, or ask again after a check-in with facts."
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

    /// A part of the request beside its body cannot be read.
    pub(super) fn malformed_head(message: impl Into<String>) -> Self {
        let message = message.into();
        let details = MalformedBody { body: String::new(), error: message.clone() };
        Self::new(ErrorKind::MalformedRequest, message, details)
    }

    /// The path is not UTF-8.
    pub(super) fn unreadable_path() -> Self {
        Self::malformed_head("The path of your request cannot be read.")
    }

    pub(super) fn schema_violation(submitted: Value, schema: &str, error: Value) -> Self {
        Rejection::schema_violation(submitted, schema, error).into()
    }

    pub(super) fn malformed_uuid(text: &str) -> Self {
        let message = "The group id in the request's URI is not a valid UUID.";
        Self::new(ErrorKind::MalformedUuid, message, text)
    }

    /// The group of the query is not one.
    pub(super) fn malformed_group(text: &str) -> Self {
        let message = "The parameter `group` must be the id of a group.";
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

    /// A rule that is a string is too large to be read.
    pub(super) fn rule_too_large(most: usize, unit: &str) -> Self {
        let message = format!("The rule of your request has more than {most} {unit}.");
        Self::new(ErrorKind::PayloadTooLarge, message, Value::Null)
    }

    /// What an explanation repeats of facts takes more than so many MiB; `advice` says what to do in its place.
    pub(super) fn explanation_too_large(most: usize, advice: &str) -> Self {
        let message = format!(
            "The explanation is too large: the comparisons of its rules show over {most} MiB of facts. {advice}"
        );
        Self::new(ErrorKind::PayloadTooLarge, message, Value::Null)
    }

    /// What the leaf groups of an explanation inherit takes more than so many MiB of memory.
    pub(super) fn inherited_too_large(most: usize) -> Self {
        let message = format!(
            "The explanation is too large: what its leaf groups inherit takes over {most} MiB of memory. Run `clade explain` in a clone of the repository."
        );
        Self::new(ErrorKind::PayloadTooLarge, message, Value::Null)
    }

    /// The changes that were asked for have more bytes than one answer may.
    pub(super) fn history_too_large(most: usize) -> Self {
        let message = format!(
            "These changes have over {} MiB, or too many values: ask for fewer at once with `limit`, and for the older ones with `before`.",
            most >> 20
        );
        Self::new(ErrorKind::PayloadTooLarge, message, Value::Null)
    }

    /// An answer has more bytes than a client can be sent at once.
    pub(super) fn answer_too_large(bytes: u64, most: usize) -> Self {
        let message = format!(
            "The answer would have {bytes} bytes, and {} MiB is the most that one may have.",
            most >> 20
        );
        Self::new(ErrorKind::PayloadTooLarge, message, Value::Null)
    }

    /// The body comes too slowly.
    pub(super) fn request_timeout() -> Self {
        let message = "The body of your request arrived too slowly.";
        Self::new(ErrorKind::RequestTimeout, message, Value::Null)
            .with_header(header::CONNECTION, "close")
    }

    /// Every connection is being worked on.
    pub(super) fn busy() -> Self {
        let message = "The daemon is busy; try again.";
        Self::new(ErrorKind::Busy, message, Value::Null).with_header(header::RETRY_AFTER, "1")
    }

    /// What `PuppetDB` knows is needed for the answer: asking again may help, and no answer is right
    /// without it.
    pub(super) fn puppetdb_unreachable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::PuppetdbUnreachable, message, Value::Null)
            .with_header(header::RETRY_AFTER, "5")
    }

    /// Masks what the error repeats of the request.
    pub(super) fn masked(mut self, masks: &Masks) -> Self {
        if matches!(self.0.kind, ErrorKind::MalformedRequest | ErrorKind::SchemaViolation) {
            masks.mask_anywhere(&mut self.0.details);
            if masks.may_cover_text(&self.0.message) {
                let message = "The body of your request is not what this route takes.";
                message.clone_into(&mut self.0.message);
            }
        }
        self
    }

    pub(super) fn status(&self) -> StatusCode {
        self.0.kind.status()
    }

    pub(super) fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// No credentials.
    pub(super) fn unauthenticated(ways: LoginWays) -> Self {
        let message = format!("Route requires authentication: {ways}");
        Self::new(ErrorKind::UserUnauthenticated, message, Value::Null)
            .with_header(header::WWW_AUTHENTICATE, "Bearer")
    }

    /// A token that is not in the file.
    pub(super) fn unknown_token() -> Self {
        let message = "The token of the request (`X-Authentication`, `Authorization: Bearer` or `?token=`) is not \
                       known to this daemon.";
        Self::new(ErrorKind::UserUnauthenticated, message, Value::Null)
            .with_header(header::WWW_AUTHENTICATE, "Bearer")
    }

    /// The header of a trusted proxy does not name one user: its sender is never treated as anonymous.
    pub(super) fn unnamed_user(why: impl std::fmt::Display) -> Self {
        let message = format!(
            "The header of the proxy does not name one user: {why}. Have the proxy send it once, with the name of the user."
        );
        Self::new(ErrorKind::UserUnauthenticated, message, Value::Null)
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

    /// The request names a commit, and its caller may only ask the live one.
    pub(super) fn other_commit_denied(name: &str) -> Self {
        let role = Role::Read.as_str();
        let message = format!(
            "`{name}` does not have the role `{role}`, which `commit`, `at` and an `X-Clade-Commit` beside the \
             followed branch need in the same grant as what else the route needs."
        );
        Self::new(ErrorKind::PermissionDenied, message, role)
    }

    /// The request names a host that this daemon does not have.
    pub(super) fn foreign_host(host: &str) -> Self {
        let shown: String = host.chars().filter(|it| !it.is_control()).take(255).collect();
        let message = format!(
            "The request names the host `{shown}`, which is not a name of this daemon: use `localhost`, or add the host to `--allowed-hosts`."
        );
        Self::new(ErrorKind::PermissionDenied, message, shown)
    }

    /// The page of another site had a browser send the request.
    pub(super) fn cross_site() -> Self {
        let message = "The request comes from a page of another site: send a token with it, or use a client that is not a browser.";
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
    pub(super) fn conflict_in_words(hierarchy: &Hierarchy, conflicts: &Conflicts<'_>) -> Self {
        let mut error = Self::conflict(hierarchy, conflicts);
        error.0.message = conflict_report(hierarchy, conflicts) + SEE_DETAILS;
        error
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::ApplicationError, message, Value::Null)
    }
}

/// Begins a message with a capital letter, as all of this API do.
pub(super) fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

impl From<ApiError> for Error {
    fn from(error: ApiError) -> Self {
        let Inner { kind, message, details, .. } = *error.0;
        Self { kind: kind.as_str().into(), msg: message, details }
    }
}

impl IntoResponse for ApiError {
    fn into_response(mut self) -> Response {
        let headers = std::mem::take(&mut self.0.headers);
        let mut response = (self.status(), Json(Error::from(self))).into_response();
        response.headers_mut().extend(headers);
        response
    }
}
