//! Which snapshot answers, and the header that says so.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{FromRef, FromRequestParts, Query};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::error::ApiError;
use super::types::ErrorKind;
use crate::classification::{Conflicts, Version};
use crate::hierarchy::GroupIndex;
use crate::model::CommitId;
use crate::reconcile::{Controller, Freshness, LookupError};
use crate::snapshot::{LiveSnapshot, Snapshot};
use crate::telemetry::Metrics;

/// The snapshot of a request: taken once, and used to the end.
#[derive(Debug)]
pub(super) struct SnapshotContext {
    pub(super) snapshot: Arc<Snapshot>,
    /// The same with its responses, unless the request names another commit.
    live: Option<Arc<LiveSnapshot>>,
    pub(super) metrics: Arc<Metrics>,
    /// How many seconds ago the branch was seen, if that is too long.
    stale: Option<u64>,
}

/// The parameters of a request's query.
#[derive(Debug)]
pub(super) struct Parameters(HashMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Parameters {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        if parts.uri.query().is_none_or(str::is_empty) {
            return Ok(Self(HashMap::new()));
        }
        match Query::<HashMap<String, String>>::from_request_parts(parts, state).await {
            Ok(Query(parameters)) => Ok(Self(parameters)),
            Err(_) => Err(ApiError::new(
                ErrorKind::MalformedRequest,
                "The query of your request cannot be read.",
                parts.uri.query().unwrap_or_default(),
            )),
        }
    }
}

impl Parameters {
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns whether a switch is on: anything but `0` and `false` turns it on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value, "0" | "false"))
    }

    /// Returns a number.
    pub(super) fn number(&self, name: &str) -> Result<Option<usize>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| ApiError::malformed_number(name, text))
    }

    /// Returns a count; one that is too large to be written down is as good as all.
    pub(super) fn count(&self, name: &str) -> Result<Option<usize>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_digit()) {
            return Err(ApiError::malformed_number(name, text));
        }
        let count = digits.parse().unwrap_or(usize::MAX);
        if count > 0 && text.starts_with('-') {
            return Err(ApiError::illegal_count(name, text));
        }
        Ok(Some(count))
    }

    /// Returns the part of a list that `limit` and `offset` ask for.
    pub(super) fn page<T>(&self, list: Vec<T>) -> Result<Vec<T>, ApiError> {
        let offset = self.number("offset")?.unwrap_or(0);
        let limit = self.number("limit")?.unwrap_or(usize::MAX);
        Ok(list.into_iter().skip(offset).take(limit).collect())
    }
}

impl SnapshotContext {
    /// Writes the classified document of a node that some groups match, parents first.
    pub(super) fn classified(
        &self,
        name: &str,
        groups: &[GroupIndex],
        version: Version,
    ) -> Result<Vec<u8>, Conflicts<'_>> {
        match &self.live {
            Some(live) => live.classified(name, groups, version),
            None => self.snapshot.classified(name, groups, version),
        }
    }
}

impl<S> FromRequestParts<S> for SnapshotContext
where
    S: Send + Sync,
    Arc<Controller>: FromRef<S>,
    Arc<Metrics>: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let parameters = Parameters::from_request_parts(parts, state).await?;
        let (controller, metrics) = (Arc::<Controller>::from_ref(state), Arc::from_ref(state));
        let mut live = None;
        let snapshot = match (parameters.get("commit"), parameters.get("at")) {
            (None, None) => match parts.headers.get(COMMIT) {
                None => Arc::clone(live.insert(controller.live()?).snapshot()),
                Some(named) => {
                    let commit = read_commit(named)?;
                    blocking(&controller, move |it| it.snapshot_from_elsewhere(commit)).await?
                }
            },
            (Some(_), Some(_)) => {
                let message = "Either `commit` or `at` can be given, not both.";
                return Err(ApiError::new(ErrorKind::MalformedRequest, message, Value::Null));
            }
            (Some(revision), None) => {
                let revision = revision.to_owned();
                blocking(&controller, move |controller| match revision.parse() {
                    // What another replica answered from may be on its way to this one.
                    Ok(commit) if controller.follows_a_remote() => {
                        controller.snapshot_from_elsewhere(commit)
                    }
                    _ => controller.snapshot_at(&revision),
                })
                .await?
            }
            (None, Some(time)) => {
                let time = read_time(time)?;
                blocking(&controller, move |it| it.snapshot_then(time)).await?
            }
        };
        let stale = match controller.freshness() {
            Freshness::Stale(age, _) => Some(age.as_secs()),
            Freshness::Fresh => None,
        };
        Ok(Self { snapshot, live, metrics, stale })
    }
}

/// How many requests read the repository at once; each has a thread.
static LOOKUPS: Semaphore = Semaphore::const_new(20);

/// How long a request waits for one of them.
pub(super) const LOOKUP_WAIT: Duration = Duration::from_secs(30);

/// Waits until a request may read the repository.
pub(super) async fn lookup() -> Result<SemaphorePermit<'static>, ApiError> {
    let waited = tokio::time::timeout(LOOKUP_WAIT, LOOKUPS.acquire()).await;
    waited.ok().and_then(Result::ok).ok_or_else(ApiError::busy)
}

/// Runs what reads the repository on a thread of its own, when there is one.
pub(super) async fn blocking<T: Send + 'static>(
    controller: &Arc<Controller>,
    work: impl FnOnce(&Controller) -> Result<T, LookupError> + Send + 'static,
) -> Result<T, ApiError> {
    let permit = lookup().await?;
    let done = blocking_at_once(controller, move |controller| {
        // Held by the thread: a client that goes away does not end the work.
        let _permit = permit;
        work(controller)
    });
    done.await
}

/// Runs what an operator asks for on a thread of its own: it never waits for what clients read.
pub(super) async fn blocking_at_once<T: Send + 'static>(
    controller: &Arc<Controller>,
    work: impl FnOnce(&Controller) -> Result<T, LookupError> + Send + 'static,
) -> Result<T, ApiError> {
    let controller = Arc::clone(controller);
    let done = tokio::task::spawn_blocking(move || work(&controller)).await;
    Ok(done.map_err(|_| ApiError::internal("The repository could not be read."))??)
}

/// Reads the commit that an earlier answer named, here or elsewhere.
fn read_commit(named: &HeaderValue) -> Result<CommitId, ApiError> {
    named.to_str().ok().and_then(|it| it.parse().ok()).ok_or_else(|| {
        let message = "The header X-Clade-Commit is not the full id of a commit.";
        ApiError::new(ErrorKind::MalformedRequest, message, Value::Null)
    })
}

/// Reads a time as RFC 3339 has it; seconds may be left out.
fn read_time(text: &str) -> Result<Timestamp, ApiError> {
    // A `+` that the client did not encode arrives as a blank.
    text.replace(' ', "+").parse().map_err(|_| {
        let message = format!("`{text}` is not a time such as 2026-10-03T02:10:00Z.");
        ApiError::new(ErrorKind::MalformedRequest, message, "at")
    })
}

const COMMIT: HeaderName = HeaderName::from_static("x-clade-commit");

/// Names the commit that answered.
pub(super) fn name_commit(response: &mut Response, commit: CommitId) {
    if let Ok(commit) = HeaderValue::from_bytes(&commit.to_hex()) {
        response.headers_mut().insert(COMMIT, commit);
    }
}

const STALE: HeaderName = HeaderName::from_static("x-clade-stale");

impl SnapshotContext {
    /// Makes an answer that names the commit.
    pub(super) fn respond(&self, answer: impl IntoResponse) -> Response {
        let mut response = answer.into_response();
        name_commit(&mut response, self.snapshot.commit);
        if let Some(seconds) = self.stale {
            response.headers_mut().insert(STALE, seconds.into());
        }
        response
    }

    /// Answers with JSON, or with an error; both name the commit.
    pub(super) fn json<T: Serialize>(&self, answer: Result<T, ApiError>) -> Response {
        match answer {
            Ok(value) => self.respond(Json(value)),
            Err(error) => self.respond(error),
        }
    }
}
