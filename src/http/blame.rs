//! After which commits a node first got its values.
#![expect(clippy::disallowed_methods, reason = "a walk over a long history is stopped in time")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::header;
use axum::response::Response;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::blocking::{REPOSITORY, Turns};
use super::error::{ApiError, sentence};
use super::known_node::answered;
use super::node_lookup::NodeLookup;
use super::node_request::NodeRequest;
use super::openapi::errors::{ClassificationErrors, FactsErrors, SnapshotErrors, UnknownNodeOrKey};
use super::openapi::parameters::{BlamedKey, SnapshotParameters};
use super::original_uri::OriginalUri;
use super::privacy::PrivacyPolicy;
use super::query::Parameters;
use super::snapshot_context::SnapshotContext;
use super::types::{BlamedValue, ErrorKind};
use crate::model::Node;
use crate::reconcile::{self, AskedNode, BlameError, Controller, LookupError};

/// How long one walk may take; then the request gets 503.
const LONGEST: Duration = Duration::from_mins(2);

/// How long a walk may take without its turn: where earlier walks have found the values, it takes no longer.
const BRIEF: Duration = Duration::from_millis(200);

/// Longer walks run one at a time: each may read all commits of the branch.
static WALKS: Turns = Turns::new();

/// For each value that a node gets, the commit after which it first came out.
#[utoipa::path(
    get, path = "/controller/nodes/{name}/blame", operation_id = "blame", tag = "Controller",
    params(("name" = String, Path), BlamedKey, SnapshotParameters),
    responses(
        (status = 200, body = [BlamedValue]),
        UnknownNodeOrKey,
        ClassificationErrors,
        FactsErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn blame(
    State(controller): State<Arc<Controller>>,
    State(lookup): State<NodeLookup>,
    State(privacy): State<PrivacyPolicy>,
    context: SnapshotContext,
    parameters: Parameters,
    uri: OriginalUri,
    request: NodeRequest,
) -> Result<Response, ApiError> {
    let key = parameters.get("key").map(str::to_owned);
    let (context, node) = answered(&lookup, context, &uri, &request).await?;
    let gone = CancellationToken::new();
    // The handler ends when the client disconnects, and the walk with it.
    let _stop = gone.clone().drop_guard();
    let node = node.into_node();
    let shown = privacy.shown(node.clone());
    let walk = Arc::new(RequestedWalk { controller, context, node, shown, key, uri, gone });
    let brief = Arc::clone(&walk);
    if let Some(response) = run(move || brief.run(BRIEF)).await? {
        return Ok(response);
    }
    let turn = WALKS.take().await?;
    let whole = Arc::clone(&walk);
    let response = run(move || {
        let _turn = turn;
        whole.run(LONGEST)
    });
    Ok(response.await?.unwrap_or_else(|| walk.context.json::<()>(Err(too_long()))))
}

async fn run(
    walk: impl FnOnce() -> Option<Response> + Send + 'static,
) -> Result<Option<Response>, ApiError> {
    REPOSITORY.run(move || Ok::<_, ApiError>(walk())).await
}

/// The walk that a request asks for.
struct RequestedWalk {
    controller: Arc<Controller>,
    context: SnapshotContext,
    node: Node,
    /// The node as it is shown.
    shown: Node,
    key: Option<String>,
    uri: OriginalUri,
    /// Cancelled when the client has gone.
    gone: CancellationToken,
}

impl RequestedWalk {
    /// Walks for so long at most, and answers; none if that is not enough.
    fn run(&self, longest: Duration) -> Option<Response> {
        let began = Instant::now();
        let is_wanted = || began.elapsed() < longest && !self.gone.is_cancelled();
        let mut values: Vec<BlamedValue> = Vec::new();
        let (commit, key) = (self.context.snapshot.commit, self.key.as_deref());
        let mut report = |it: reconcile::BlamedValue| values.push(it.into());
        let asked = AskedNode { node: &self.node, shown: &self.shown };
        let walked = self.controller.blame(commit, asked, key, &is_wanted, &mut report);
        let answer = match walked {
            Err(BlameError::Stopped) => return None,
            Err(error) => Err(blame_error(error, &self.uri)),
            Ok(()) => {
                values.sort_by(|a, b| a.key.cmp(&b.key));
                Ok(values)
            }
        };
        Some(self.context.json(answer))
    }
}

/// Returns the error of a walk, or of its first step.
pub(super) fn blame_error(error: BlameError, uri: &OriginalUri) -> ApiError {
    match error {
        BlameError::Unbuilt(error) => LookupError::from(error).into(),
        BlameError::Unopened(error) => LookupError::from(error).into(),
        BlameError::NoSuchKey { .. } => {
            let mut message = sentence(&error.to_string());
            if !message.ends_with('?') {
                message.push('.');
            }
            ApiError::not_known(message, uri)
        }
        error => ApiError::internal(format!("{}.", sentence(&error.to_string()))),
    }
}

/// The error of a walk that was stopped.
fn too_long() -> ApiError {
    let message = format!("{}.", sentence(&BlameError::Stopped.to_string()));
    ApiError::new(ErrorKind::Busy, message, Value::Null).with_header(header::RETRY_AFTER, "120")
}
