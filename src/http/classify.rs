//! Classifying nodes.

use axum::body::Body;
use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;

use super::answer::Answering;
use super::body::{node, read_json};
use super::error::ApiError;
use crate::classification::{self, Explanation, Final, Outcome, Version};
use crate::facts::with_certname;
use crate::model::Node;
use crate::telemetry::Classified;

/// Classifies a node and counts how that ended.
fn explained<'a>(answering: &'a Answering, node: &'a Node) -> Result<Explanation<'a>, ApiError> {
    let explained = answering.snapshot.classify(node);
    answering.metrics.count(match &explained {
        Ok(it) if matches!(it.outcome, Outcome::Conflict(_)) => Classified::Conflict,
        Ok(_) => Classified::Answered,
        Err(_) => Classified::EvaluationError,
    });
    Ok(explained?)
}

/// Calls `use_it` with the classification of a node, or answers with why there is none.
fn classified<T>(
    answering: &Answering,
    node: &Node,
    use_it: impl FnOnce(&Explanation<'_>, &Final<'_>) -> T,
) -> Result<T, ApiError> {
    let explanation = explained(answering, node)?;
    match &explanation.outcome {
        Outcome::Classified(result) => Ok(use_it(&explanation, result)),
        Outcome::Conflict(conflicts) => {
            Err(ApiError::conflict(&answering.snapshot.estate.hierarchy, conflicts))
        }
    }
}

async fn document(
    answering: Answering,
    name: String,
    body: Body,
    version: Version,
) -> Result<Response, ApiError> {
    let node = node(name, read_json(body).await?)?;
    let answer = classified(&answering, &node, |explanation, result| {
        classification::classified(explanation, result, version)
    });
    Ok(answering.json(answer))
}

pub(super) async fn v1(
    answering: Answering,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    document(answering, name, body, Version::V1).await
}

pub(super) async fn v2(
    answering: Answering,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    document(answering, name, body, Version::V2).await
}

/// A GET has no facts, whatever its body.
pub(super) async fn v1_without_facts(
    answering: Answering,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    document(answering, name, Body::empty(), Version::V1).await
}

/// A GET has no facts, whatever its body.
pub(super) async fn v2_without_facts(
    answering: Answering,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    document(answering, name, Body::empty(), Version::V2).await
}

pub(super) async fn explanation(
    answering: Answering,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let node = node(name, read_json(body).await?)?;
    let answer = explained(&answering, &node).map(|it| classification::explanation(&it));
    Ok(answering.json(answer))
}

/// Prints the ENC document. The certname is that of the URL, so it is as trusted as the caller.
fn enc(answering: &Answering, mut node: Node) -> Response {
    node.trusted = with_certname(Some(std::mem::take(&mut node.trusted)), &node.name);
    let answer = classified(answering, &node, |_, result| classification::enc_document(result));
    match answer {
        Ok(text) => answering.respond(([(header::CONTENT_TYPE, "text/yaml; charset=utf-8")], text)),
        Err(error) => answering.respond(error.into_response()),
    }
}

pub(super) async fn enc_without_facts(answering: Answering, Path(name): Path<String>) -> Response {
    enc(&answering, Node::named(name))
}

pub(super) async fn enc_with_facts(
    answering: Answering,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let mut body = read_json(body).await?;
    // A hash of facts alone is taken for facts.
    if let Some(Value::Object(fields)) = &mut body
        && !["fact", "facts", "trusted"].into_iter().any(|key| fields.contains_key(key))
        && !fields.is_empty()
    {
        let fact = std::mem::take(fields);
        fields.insert("fact".to_owned(), fact.into());
    }
    Ok(enc(&answering, node(name, body)?))
}

pub(super) async fn hiera(answering: Answering, Path(name): Path<String>) -> Response {
    let mut node = Node::named(name);
    node.trusted = with_certname(None, &node.name);
    let answer = classified(&answering, &node, |_, result| classification::hiera(result));
    answering.json(answer)
}
