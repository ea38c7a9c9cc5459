//! Webhooks: a forge reports a push, and the daemon fetches the branch now.
//!
//! The signature over the raw bytes is verified before they are parsed, in constant time and memory. The
//! payload is a hint at most: which commit to expect. Only a fetch from the remote moves the branch, so
//! replays, forgeries and disorder change nothing.

mod deliveries;
#[cfg(feature = "fuzzing")]
mod fuzzing;
mod payload;
mod secret;
mod signature;
mod tally;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use jiff::Timestamp;

use self::deliveries::Deliveries;
#[cfg(feature = "fuzzing")]
pub use self::fuzzing::fuzz_delivery;
use self::payload::{Interest, Provider};
use self::secret::Secret;
use self::signature::Check;
use self::tally::DeliveryTally;
use super::blocking::{Panicked, run_blocking};
use super::error::ApiError;
use super::openapi::errors::DeliveryErrors;
use super::original_uri::OriginalUri;
use super::path_parameter::PathParameter;
use super::types::{Delivery, DeliveryAction, ErrorKind, WebhookDeliveries};
use crate::config::watched::{
    FileEnd, ReloadCause, Reloaded, WatchError, WatchedFile, WatchedFiles,
};
use crate::reconcile::Controller;
use crate::telemetry::{Delivered, Metrics};

/// The largest body: forges send at most 25 MiB.
const LIMIT: usize = 26 << 20;

/// The largest body that is parsed for its commit; a larger one only triggers a fetch.
const PARSED: usize = 1 << 20;

/// The secrets and recent deliveries of webhooks.
#[derive(Debug, Default)]
pub struct Webhooks {
    secrets: Option<WatchedFiles<Vec<Secret>, std::io::Error>>,
    recent: Deliveries,
    tally: DeliveryTally,
    /// Whether refs of pull requests are fetched, so that their deliveries count.
    pull_requests: bool,
}

impl Webhooks {
    /// Reads the secrets.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, has no secret, or one that is too short.
    pub fn new(file: Option<PathBuf>, pull_requests: bool) -> std::io::Result<Self> {
        let secrets = file
            .map(|path| {
                let file = WatchedFile { path, ending: FileEnd::LineEnd };
                WatchedFiles::open(vec![file], |contents| secrets(&contents.concat()))
            })
            .transpose()
            .map_err(|error| match error {
                WatchError::Unusable(error) | WatchError::Unreadable { source: error, .. } => error,
                incomplete @ (WatchError::Incomplete { .. } | WatchError::Unclosed { .. }) => {
                    std::io::Error::other(incomplete.to_string())
                }
            })?;
        Ok(Self { secrets, pull_requests, ..Self::default() })
    }

    /// Begins the counts of deliveries, if there may be any.
    pub fn begin(&self, metrics: &Metrics) {
        if self.secrets.is_some() {
            for provider in Provider::ALL {
                metrics.begin_webhooks(provider.as_str());
            }
        }
    }

    /// Returns how deliveries ended since the start.
    pub(super) fn deliveries(&self) -> Vec<WebhookDeliveries> {
        self.tally.rows()
    }

    /// Loads the secrets if their file changed; a file that cannot be used leaves the secrets as they are.
    pub fn reload(
        &self,
        cause: ReloadCause,
    ) -> Option<Result<Reloaded, WatchError<std::io::Error>>> {
        self.secrets.as_ref().map(|it| it.reload(cause))
    }
}

/// Reads secrets, one a line; several allow for a rotation.
fn secrets(bytes: &[u8]) -> std::io::Result<Vec<Secret>> {
    let text = std::str::from_utf8(bytes).map_err(std::io::Error::other)?;
    let secrets = Secret::parse_all(text).map_err(std::io::Error::other)?;
    if secrets.is_empty() {
        return Err(std::io::Error::other("the file has no secret"));
    }
    if secrets.iter().any(Secret::is_weak) {
        tracing::warn!(
            "a webhook secret has fewer than 16 bytes: make one by `openssl rand -hex 32`"
        );
    }
    Ok(secrets)
}

/// A forge reports a push: the branch is fetched now.
#[utoipa::path(
    post, path = "/webhook/{provider}", operation_id = "webhook", tag = "Webhooks",
    params(Provider),
    request_body = Object,
    responses(
        (status = 200, body = Delivery, description = "Nothing to do: `duplicate` or `ignored`"),
        (status = 202, body = Delivery, description = "The branch is fetched"),
        DeliveryErrors,
    ),
)]
pub(super) async fn receive(
    State(webhooks): State<Arc<Webhooks>>,
    State(controller): State<Arc<Controller>>,
    State(metrics): State<Arc<Metrics>>,
    uri: OriginalUri,
    PathParameter(provider): PathParameter,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let Some(provider) = Provider::of(&provider) else {
        return Err(ApiError::not_found(&uri));
    };
    let result = deliver(&webhooks, &controller, provider, &headers, body).await;
    let counted = match &result {
        Ok((delivered, _)) => *delivered,
        Err(error) => match error.kind() {
            ErrorKind::UserUnauthenticated => Delivered::Unauthenticated,
            ErrorKind::PayloadTooLarge => Delivered::TooLarge,
            _ => Delivered::Malformed,
        },
    };
    metrics.count_webhook(provider.as_str(), counted);
    webhooks.tally.count(provider.as_str(), counted, Timestamp::now());
    result.map(|(_, response)| response)
}

async fn deliver(
    webhooks: &Webhooks,
    controller: &Arc<Controller>,
    provider: Provider,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Delivered, Response), ApiError> {
    let secrets = webhooks.secrets.as_ref().map(WatchedFiles::load);
    let secrets = secrets.as_deref().map(|it| it.as_slice()).unwrap_or_default();
    let mut check = Check::begin(provider, headers, secrets, Timestamp::now())
        .ok_or_else(ApiError::unsigned)?;
    let start = read(body, &mut check).await?;
    if !check.passes() {
        return Err(ApiError::unsigned());
    }
    // One that is malformed is not noted: it is malformed again.
    let payload = start.map(|bytes| payload_of(provider, &bytes)).transpose()?.flatten();
    let delivery = provider.delivery(headers);
    let answer = |status, delivered, action| {
        let delivery = Delivery { delivery: delivery.clone(), action };
        (delivered, (status, Json(delivery)).into_response())
    };
    if delivery.as_deref().is_some_and(|id| !webhooks.recent.note(provider, id)) {
        return Ok(answer(StatusCode::OK, Delivered::Duplicate, DeliveryAction::Duplicate));
    }
    let interest = match payload {
        None => Interest::Something,
        Some(payload) => {
            let branch = controller.watched_ref();
            let pull_requests = webhooks.pull_requests;
            payload::interest(provider, headers, &payload, branch.as_deref(), pull_requests)
        }
    };
    let commit = match interest {
        Interest::None => {
            return Ok(answer(StatusCode::OK, Delivered::Ignored, DeliveryAction::Ignored));
        }
        Interest::Something => None,
        Interest::Commit(commit) => Some(commit),
    };
    let controller = Arc::clone(controller);
    // The journal may wait for its disk.
    let expected = run_blocking(move || controller.expect_commit(commit)).await;
    expected.map_err(|Panicked| ApiError::internal("The delivery could not be noted."))?;
    Ok(answer(StatusCode::ACCEPTED, Delivered::Accepted, DeliveryAction::Fetch))
}

/// Reads a payload; none where a provider may send an empty one.
fn payload_of(provider: Provider, bytes: &[u8]) -> Result<Option<serde_json::Value>, ApiError> {
    if bytes.is_empty() && provider == Provider::Generic {
        return Ok(None);
    }
    super::body::to_json(bytes).map(Some)
}

/// Reads a body through the check, and keeps it if it is small enough to parse.
async fn read(body: Body, check: &mut Check) -> Result<Option<Vec<u8>>, ApiError> {
    let mut body = body;
    let mut start = Some(Vec::new());
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| super::body::read_error(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        length += data.len();
        if length > LIMIT {
            return Err(ApiError::payload_too_large(LIMIT));
        }
        check.update(&data);
        if length > PARSED {
            start = None;
        }
        if let Some(start) = &mut start {
            start.extend_from_slice(&data);
        }
    }
    Ok(start)
}
