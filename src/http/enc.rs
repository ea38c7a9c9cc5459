//! The ENC document, Hiera's data, and what clients of Foreman ask instead.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{OriginalUri, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::access::{Caller, Role, denied};
use super::answer::SnapshotContext;
use super::body::{node, read, read_json, to_json_within};
use super::check_ins::{keep, note};
use super::classify::classified;
use super::compute::{NODES, weight};
use super::error::ApiError;
use super::known::{FactsPolicy, FactsSource, Known, TrustedSource, known, stored_trusted};
use super::router::App;
use super::server::Room;
use crate::classification;
use crate::facts::{trusted_data, with_certname};
use crate::model::{NODE_VALUES, Node};
use crate::store::Received;
use crate::telemetry::Classified;

/// Prints the ENC document. The certname is that of the URL, so it is as trusted as the caller.
fn document(answering: &SnapshotContext, mut node: Node) -> Result<Bytes, ApiError> {
    answering.override_trusted(&mut node);
    node.trusted = with_certname(Some(std::mem::take(&mut node.trusted)), &node.name);
    let answer = classified(answering, &node, |_, result| classification::enc_document(result));
    answer.map(Bytes::from)
}

fn respond(answering: &SnapshotContext, document: Result<Bytes, ApiError>) -> Response {
    match document {
        Ok(text) => answering.respond(([(header::CONTENT_TYPE, "text/yaml; charset=utf-8")], text)),
        Err(error) => answering.respond(error.into_response()),
    }
}

/// Answers from what is known of a node.
async fn by_name(
    app: &App,
    answering: SnapshotContext,
    uri: &OriginalUri,
    name: String,
) -> Result<Response, ApiError> {
    // Facts that are kept elsewhere change without a word, and a node's own certificate replaces what
    // was kept.
    let FactsPolicy { directory, elsewhere, .. } = &app.facts;
    let source = TrustedSource::of(&answering.submitted(&name));
    let is_shared = source == TrustedSource::Store;
    let is_same_for_all = directory.is_none() && elsewhere.is_none() && is_shared;
    let replies = is_same_for_all.then_some(&app.replies);
    let ticket = match replies.map(|it| it.find(&name, answering.snapshot.commit)) {
        Some(Ok(reply)) => {
            answering.metrics.count(Classified::Answered);
            return Ok(respond(&answering, Ok(reply)));
        }
        Some(Err(ticket)) => Some(ticket),
        None => None,
    };
    let node = known(app, name.clone(), source).await?.for_classification(&app.facts, uri)?;
    let weight = weight(&node);
    let print = move || {
        let document = document(&answering, node);
        (answering, document)
    };
    let (answering, document) = NODES.run(weight, print).await?;
    if let (Some(replies), Some(ticket), Ok(reply)) = (replies, &ticket, &document) {
        replies.keep(&name, ticket, reply.clone());
    }
    Ok(respond(&answering, document))
}

pub(super) async fn without_facts(
    State(app): State<Arc<App>>,
    answering: SnapshotContext,
    uri: OriginalUri,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    by_name(&app, answering, &uri, name).await
}

pub(super) async fn with_facts(
    State(app): State<Arc<App>>,
    answering: SnapshotContext,
    uri: OriginalUri,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let (mut node, kept_facts) = match Said::read(name.clone(), read_json(body).await?)? {
        Said::Nothing => return by_name(&app, answering, &uri, name).await,
        Said::Facts(node) => (node, KeptFacts::All),
        Said::Trusted(trusted) => {
            let known = known(&app, name, TrustedSource::Request).await?;
            let kept_facts = match &known {
                // What is kept would hide what the file or `PuppetDB` says later.
                Known::Facts(_, FactsSource::Elsewhere) => KeptFacts::None,
                _ => KeptFacts::All,
            };
            (Node { trusted, ..known.for_classification(&app.facts, &uri)? }, kept_facts)
        }
    };
    let weight = weight(&node);
    let print = move || {
        answering.override_trusted(&mut node);
        if answering.submitted(&node.name).is_kept() {
            let commit = Some(answering.snapshot.commit);
            match kept_facts {
                KeptFacts::All => note(&app, &node, commit, None),
                KeptFacts::None => {
                    let trusted = node.trusted.clone();
                    let bare = Node { trusted, ..Node::named(node.name.clone()) };
                    note(&app, &bare, commit, None);
                }
            }
        }
        let document = document(&answering, node);
        respond(&answering, document)
    };
    NODES.run(weight, print).await
}

/// Which facts of a node are kept with its check-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeptFacts {
    All,
    None,
}

/// What a body says of a node.
enum Said {
    /// Facts, and with them all that is to be known.
    Facts(Node),
    /// What the certificate proves; the facts are those that are known.
    Trusted(Map<String, Value>),
    /// Nothing: there is no body, or neither facts nor trusted data in it.
    Nothing,
}

impl Said {
    fn read(name: String, body: Option<Value>) -> Result<Self, ApiError> {
        let Some(body) = body else { return Ok(Self::Nothing) };
        let has_trusted = body.get("trusted").is_some_and(|it| !it.is_null());
        let node = node(name, Some(as_facts(body)))?;
        Ok(match has_trusted {
            // No node has no facts: facts without any are facts that the client does not have.
            _ if !node.fact.is_empty() => Self::Facts(node),
            true => Self::Trusted(node.trusted),
            false => Self::Nothing,
        })
    }
}

/// A hash of facts alone is taken for facts.
fn as_facts(mut body: Value) -> Value {
    if let Value::Object(fields) = &mut body
        && !["fact", "facts", "trusted"].into_iter().any(|key| fields.contains_key(key))
        && !fields.is_empty()
    {
        let fact = std::mem::take(fields);
        fields.insert("fact".to_owned(), fact.into());
    }
    body
}

/// Takes facts from Foreman's clients: `{"name", "facts", …}`. They are the node's from now on.
pub(super) async fn upload_facts(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Body,
) -> Result<Response, ApiError> {
    let bytes = read(body).await?.unwrap_or_default();
    let weight = bytes.len();
    let take = move || match bytes.len() {
        0 => uploaded(Value::Null),
        _ => uploaded(to_json_within(&bytes, NODE_VALUES)?),
    };
    let (name, fact) = NODES.run(weight, take).await??;
    let submitted = caller.uploads(&name);
    if !submitted.is_kept() {
        return Err(denied(&caller, Role::CheckIn));
    }
    // The store may be waited for: the values are gone.
    Room::of_request().keep_text(fact.len());
    let trusted = match submitted.proved() {
        Some(proved) => trusted_data(&name, Some(proved.clone())),
        // What the node proved before stays.
        // With a damaged store put aside, what it proved may be lost: then bodyless questions get 503
        // until it is proved again, see `Stored::lost`.
        None => stored_trusted(&app, name.clone()).await?,
    };
    let trusted = Value::from(trusted).to_string();
    let (time, name) = (Timestamp::now(), name.as_str());
    let (fact, trusted) = (fact.as_str(), trusted.as_str());
    let received = Received { time, transaction_uuid: None, commit: None, name, fact, trusted };
    keep(&app, &received).await?;
    let message = if app.check_ins.is_durable() {
        "Facts were stored"
    } else {
        "Facts were stored in memory, until the daemon stops: it has no --data-dir"
    };
    let answer = json!({"id": 1, "name": name, "message": message});
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

/// Returns the certname and the text of the facts; of a large body no more stays in memory.
fn uploaded(mut body: Value) -> Result<(String, String), ApiError> {
    let name = ["certname", "name"].into_iter().find_map(|key| body.get(key)?.as_str());
    let name = name.map(str::to_owned);
    let (Some(name), Some(Value::Object(facts))) = (name, body.get_mut("facts")) else {
        let error = Value::from("({:name missing-required-key} {:facts missing-required-key})");
        return Err(ApiError::schema_violation(&body, "Facts", &error));
    };
    // An agent can send a fact of this name; it is not what a certificate proves.
    facts.remove("trusted");
    // They would not take the place of facts that are known, and the client would be told that they did.
    if facts.is_empty() {
        let error = Value::from("({:facts (not (seq facts))})");
        return Err(ApiError::schema_violation(&body, "Facts", &error));
    }
    let text = serde_json::to_string(facts);
    let text = text.map_err(|_| ApiError::internal("The facts could not be written."))?;
    Ok((name, text))
}

pub(super) async fn hiera(
    State(app): State<Arc<App>>,
    answering: SnapshotContext,
    uri: OriginalUri,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    config_data_by_name(&app, answering, &uri, name).await
}

/// Returns the config data of a node whose facts come along: any daemon can answer, whichever the
/// node has checked in with. Nothing is kept.
pub(super) async fn hiera_with_facts(
    State(app): State<Arc<App>>,
    answering: SnapshotContext,
    uri: OriginalUri,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let node = match Said::read(name.clone(), read_json(body).await?)? {
        Said::Nothing => return config_data_by_name(&app, answering, &uri, name).await,
        Said::Facts(node) => node,
        Said::Trusted(trusted) => {
            let known = known(&app, name, TrustedSource::Request).await?;
            Node { trusted, ..known.for_lookup(&answering.snapshot, &uri)? }
        }
    };
    config_data(answering, node).await
}

/// Returns the config data of a node that is known.
async fn config_data_by_name(
    app: &App,
    answering: SnapshotContext,
    uri: &OriginalUri,
    name: String,
) -> Result<Response, ApiError> {
    let source = TrustedSource::of(&answering.submitted(&name));
    let node = known(app, name, source).await?.for_lookup(&answering.snapshot, uri)?;
    config_data(answering, node).await
}

async fn config_data(answering: SnapshotContext, mut node: Node) -> Result<Response, ApiError> {
    let weight = weight(&node);
    let write = move || {
        answering.override_trusted(&mut node);
        node.trusted = with_certname(Some(std::mem::take(&mut node.trusted)), &node.name);
        let answer = classified(&answering, &node, |_, result| classification::hiera(result));
        answering.json(answer)
    };
    NODES.run(weight, write).await
}
