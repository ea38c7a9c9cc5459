//! After which commits a node first got its values.
#![expect(clippy::disallowed_methods, reason = "a walk over a long history is stopped in time")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{OriginalUri, State};
use axum::http::header;
use axum::response::Response;
use serde_json::Value;

use super::blocking::{REPOSITORY, Turns};
use super::classify::classified;
use super::compute::{TOOLS, weight};
use super::error::{ApiError, sentence};
use super::node_lookup::{NodeLookup, TrustedSource};
use super::node_request::NodeRequest;
use super::openapi::errors::{ClassificationErrors, FactsErrors, SnapshotErrors, UnknownNodeOrKey};
use super::openapi::parameters::{BlamedKey, SnapshotParameters};
use super::query::Parameters;
use super::snapshot_context::SnapshotContext;
use super::types::{BlamedValue, ErrorKind};
use crate::model::{CommitId, Node};
use crate::reconcile::{BlameError, Controller, LookupError};

/// How long one walk may take; then the request gets 503.
const LONGEST: Duration = Duration::from_mins(2);

/// Walks run one at a time: each reads all commits of the branch.
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
    context: SnapshotContext,
    parameters: Parameters,
    uri: OriginalUri,
    request: NodeRequest,
) -> Result<Response, ApiError> {
    let key = parameters.get("key").map(str::to_owned);
    let known = lookup.find(&request, TrustedSource::without_body(&request)).await?;
    let node = known.for_lookup(&context.snapshot, &uri)?.with_certname();
    // A node without an answer gets the error of any other request for it.
    let weight = weight(&node);
    let classify = move || classified(&context, &node, |_, _| ()).map(|()| (context, node));
    let (context, node) = TOOLS.run(weight, classify).await??;
    let turn = WALKS.take().await?;
    let answer = move || {
        let _turn = turn;
        let (commit, node) = (context.snapshot.commit, node.into_node());
        Ok::<_, ApiError>(context.json(walk(&controller, commit, &node, key.as_deref(), &uri)))
    };
    REPOSITORY.run(answer).await
}

fn walk(
    controller: &Controller,
    commit: CommitId,
    node: &Node,
    key: Option<&str>,
    uri: &OriginalUri,
) -> Result<Vec<BlamedValue>, ApiError> {
    let began = Instant::now();
    let mut values: Vec<BlamedValue> = Vec::new();
    let walked = controller.blame(commit, node, key, &|| began.elapsed() < LONGEST, &mut |it| {
        values.push(it.into());
    });
    walked.map_err(|error| match error {
        BlameError::Unbuilt(error) => LookupError::from(error).into(),
        BlameError::Stopped => {
            let message = format!("{}.", sentence(&error.to_string()));
            ApiError::new(ErrorKind::Busy, message, Value::Null)
                .with_header(header::RETRY_AFTER, "120")
        }
        BlameError::NoSuchKey { .. } => {
            ApiError::not_known(format!("{}.", sentence(&error.to_string())), uri)
        }
        error => ApiError::internal(format!("{}.", sentence(&error.to_string()))),
    })?;
    values.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(values)
}
