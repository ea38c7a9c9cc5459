//! Classifying nodes.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{OriginalUri, Path, State};
use axum::http::header;
use axum::response::Response;

use super::answer::SnapshotContext;
use super::body::{check_values, node, read, shape, to_json, to_json_within};
use super::check_ins::{note, note_received};
use super::compute::{GROUP, NODES, TOOLS, weight};
use super::error::ApiError;
use super::known::{TrustedSource, known};
use super::router::App;
use crate::classification::{self, Explanation, Final, Outcome, Version};
use crate::facts::with_certname;
use crate::model::{NODE_VALUES, Node};
use crate::snapshot::ResolvedPaths;
use crate::telemetry::Classified;

/// Classifies a node and counts how that ended.
pub(super) fn explained<'a>(
    answering: &'a SnapshotContext,
    node: &'a Node,
) -> Result<Explanation<'a>, ApiError> {
    let explained = answering.snapshot.classify(node);
    answering.metrics.count(match &explained {
        Ok(it) if matches!(it.outcome, Outcome::Conflict(_)) => Classified::Conflict,
        Ok(_) => Classified::Answered,
        Err(_) => Classified::EvaluationError,
    });
    Ok(explained?)
}

/// Calls `use_it` with the classification of a node, or answers with why there is none.
pub(super) fn classified<T>(
    answering: &SnapshotContext,
    node: &Node,
    use_it: impl FnOnce(&Explanation<'_>, &Final<'_>) -> T,
) -> Result<T, ApiError> {
    let explanation = explained(answering, node)?;
    match &explanation.outcome {
        Outcome::Classified(result) => Ok(use_it(&explanation, result)),
        Outcome::Conflict(conflicts) => Err(ApiError::conflict_in_words(
            &answering.snapshot.estate.hierarchy,
            conflicts,
            &node.name,
        )),
    }
}

async fn document(
    app: &Arc<App>,
    answering: SnapshotContext,
    name: String,
    body: Body,
    version: Version,
) -> Result<Response, ApiError> {
    let bytes = read(body).await?;
    let (app, weight) = (Arc::clone(app), bytes.as_ref().map_or(0, Bytes::len));
    NODES.run(weight, move || classify(&app, &answering, name, bytes.as_deref(), version)).await?
}

/// Classifies a node with the facts of a body.
fn classify(
    app: &App,
    answering: &SnapshotContext,
    name: String,
    bytes: Option<&[u8]>,
    version: Version,
) -> Result<Response, ApiError> {
    if let Some(bytes) = bytes {
        check_values(bytes, NODE_VALUES)?;
    }
    let index = answering.snapshot.index();
    let commit = Some(answering.snapshot.commit);
    // Nearly all bodies can be read without making anything of what no rule looks at.
    let submitted = answering.submitted(&name);
    if submitted.proved().is_none()
        && let Some(request) = bytes.and_then(|bytes| index.read(&name, bytes))
    {
        app.metrics.count_shape(request.shape);
        if submitted.is_kept() {
            note_received(app, &name, &request, commit);
        }
        return Ok(short(answering, &name, &request.sight, version));
    }
    let body = bytes.map(to_json).transpose()?;
    app.metrics.count_shape(shape(body.as_ref()));
    let asked = body.is_some();
    let transaction = body.as_ref().and_then(|it| it.get("transaction_uuid")?.as_str());
    let transaction = transaction.map(str::to_owned);
    let mut node = node(name, body)?;
    answering.override_trusted(&mut node);
    if asked && submitted.is_kept() {
        note(app, &node, commit, transaction);
    }
    Ok(short(answering, &node.name, &index.see(&node), version))
}

/// Answers with the classified document.
fn short(
    answering: &SnapshotContext,
    name: &str,
    sight: &ResolvedPaths<'_>,
    version: Version,
) -> Response {
    let snapshot = &answering.snapshot;
    let hierarchy = &snapshot.estate.hierarchy;
    let (counted, answer) = match snapshot.index().matches(hierarchy, sight) {
        Err(error) => (Classified::EvaluationError, Err(error.into())),
        Ok(groups) => match answering.classified(name, &groups, version) {
            Ok(text) => (Classified::Answered, Ok(text)),
            Err(conflicts) => {
                (Classified::Conflict, Err(ApiError::conflict(hierarchy, &conflicts)))
            }
        },
    };
    answering.metrics.count(counted);
    match answer {
        Ok(text) => answering.respond(([(header::CONTENT_TYPE, "application/json")], text)),
        Err(error) => answering.respond(error),
    }
}

pub(super) async fn v1(
    State(app): State<Arc<App>>,
    answering: SnapshotContext,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    document(&app, answering, name, body, Version::V1).await
}

pub(super) async fn v2(
    State(app): State<Arc<App>>,
    answering: SnapshotContext,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    document(&app, answering, name, body, Version::V2).await
}

/// A GET has no facts, whatever its body.
pub(super) async fn v1_without_facts(
    State(app): State<Arc<App>>,
    answering: SnapshotContext,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    document(&app, answering, name, Body::empty(), Version::V1).await
}

/// A GET has no facts, whatever its body.
pub(super) async fn v2_without_facts(
    State(app): State<Arc<App>>,
    answering: SnapshotContext,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    document(&app, answering, name, Body::empty(), Version::V2).await
}

pub(super) async fn explanation(
    answering: SnapshotContext,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let bytes = read(body).await?;
    let weight = all_groups(&answering) + bytes.as_ref().map_or(0, Bytes::len);
    let explain = move || {
        let body = bytes.map(|it| to_json_within(&it, NODE_VALUES)).transpose()?;
        Ok(explain(&answering, node(name, body)?))
    };
    TOOLS.run(weight, explain).await?
}

/// Explains the classification of a node by what is known of it; the name alone explains nothing.
pub(super) async fn explanation_by_name(
    State(app): State<Arc<App>>,
    answering: SnapshotContext,
    uri: OriginalUri,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    let source = TrustedSource::of(&answering.submitted(&name));
    let mut node = known(&app, name, source).await?.for_lookup(&answering.snapshot, &uri)?;
    // As in the ENC document of the same node.
    node.trusted = with_certname(Some(std::mem::take(&mut node.trusted)), &node.name);
    let weight = all_groups(&answering) + weight(&node);
    TOOLS.run(weight, move || explain(&answering, node)).await
}

/// Returns what it weighs to ask every group.
fn all_groups(answering: &SnapshotContext) -> usize {
    answering.snapshot.estate.hierarchy.len() * GROUP
}

fn explain(answering: &SnapshotContext, mut node: Node) -> Response {
    answering.override_trusted(&mut node);
    let fields = explained(answering, &node).map(|it| classification::explanation_fields(&it));
    answering.json(fields.map(|it| classification::explanation_with(node, it)))
}
