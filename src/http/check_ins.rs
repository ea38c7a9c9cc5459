//! Check-ins: which nodes asked, and what they met.

use std::collections::{BTreeSet, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{OriginalUri, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::answer::{Answering, Parameters, lookup};
use super::error::{ApiError, sentence};
use super::groups::find;
use super::router::App;
use crate::classification;
use crate::hierarchy::{GroupIndex, inherited_rule};
use crate::model::{CommitId, Node};
use crate::rule::{QueryFormat, to_covering_query};
use crate::snapshot::{Request, Snapshot};
use crate::store::{CheckIn, Fault, Received, StoreError, after};

/// The largest page of a list that is made without being asked for a limit.
const PAGE: usize = 1000;

/// How many bytes of a list are sent together.
const CHUNK: usize = 256 << 10;

/// Notes that a node asked.
pub(super) fn note(
    app: &App,
    node: &Node,
    commit: Option<CommitId>,
    transaction_uuid: Option<String>,
) {
    let time = Timestamp::now();
    app.check_ins.note(&CheckIn { time, transaction_uuid, commit, node: node.clone() });
    app.replies.forget(&node.name);
}

/// Notes that a node asked, with facts as they stand in the body.
pub(super) fn note_received(
    app: &App,
    name: &str,
    request: &Request<'_>,
    commit: Option<CommitId>,
) {
    let received = Received {
        time: Timestamp::now(),
        transaction_uuid: request.transaction.as_deref(),
        commit,
        name,
        fact: request.fact,
        trusted: request.trusted,
    };
    app.check_ins.note_received(&received);
    app.replies.forget(name);
}

/// Keeps a check-in: it is on disk when this returns.
pub(super) async fn keep(app: &App, received: &Received<'_>) -> Result<(), ApiError> {
    let kept = app.check_ins.keep(received).await;
    // Also what was not kept may have been read meanwhile.
    app.replies.forget(received.name);
    Ok(kept?)
}

/// Lists nodes: read, written and sent some at a time, so that a list takes the memory of one node.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    parameters: Parameters,
) -> Result<Response, ApiError> {
    let offset = parameters.number("offset")?.unwrap_or(0);
    let limit = parameters.number("limit")?.unwrap_or(PAGE);
    let facts = if parameters.is_on("facts") { WithFacts::Yes } else { WithFacts::No };
    // What cannot be read at all is an error; what fails later breaks the answer off.
    let first = blocking(&app, move |app| app.check_ins.name_at(offset)).await?;
    let (sender, mut chunks) = tokio::sync::mpsc::channel(1);
    tokio::task::spawn_blocking(move || {
        if let Err(error) = write_list(&app, first, limit, facts, &sender) {
            sender.blocking_send(Err(error)).ok();
        }
    });
    let begun = chunks.recv().await.ok_or_else(StoreError::interrupted)??;
    // A list that is short has a length.
    let body = match chunks.recv().await.transpose()? {
        None => Body::from(begun),
        Some(next) => Body::from_stream(Chunks { ready: [Some(begun), Some(next)], rest: chunks }),
    };
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Whether facts are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WithFacts {
    Yes,
    No,
}

type Chunk = Result<Bytes, StoreError>;

/// The chunks of an answer that is still being written.
#[derive(Debug)]
struct Chunks {
    /// What was written when the answer began.
    ready: [Option<Bytes>; 2],
    rest: tokio::sync::mpsc::Receiver<Chunk>,
}

impl futures_core::Stream for Chunks {
    type Item = Chunk;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Chunk>> {
        if let Some(chunk) = self.ready.iter_mut().find_map(Option::take) {
            return Poll::Ready(Some(Ok(chunk)));
        }
        let chunk = self.rest.poll_recv(context);
        if let Poll::Ready(Some(Err(error))) = &chunk {
            // The connection ends within the answer, so that no client takes a part for the whole.
            tracing::warn!(%error, "a list of nodes breaks off");
        }
        chunk
    }
}

/// Writes a list of nodes from a name on. Blocking.
fn write_list(
    app: &App,
    first: Option<String>,
    limit: usize,
    facts: WithFacts,
    sender: &tokio::sync::mpsc::Sender<Chunk>,
) -> Result<(), StoreError> {
    let (mut chunk, mut from, mut left) = (b"[".to_vec(), first, limit);
    while let Some(name) = from.take().filter(|_| left > 0) {
        let mut last = None;
        for check_in in app.check_ins.some_from(&name)?.into_iter().take(left) {
            if left < limit {
                chunk.push(b',');
            }
            left -= 1;
            // A value is always written, and a vector takes all.
            serde_json::to_writer(&mut chunk, &to_value(app, &check_in, facts)).ok();
            last = Some(check_in.node.name);
            if chunk.len() >= CHUNK && !send(sender, &mut chunk) {
                return Ok(());
            }
        }
        from = last.map(|it| after(&it));
    }
    chunk.push(b']');
    send(sender, &mut chunk);
    Ok(())
}

/// Sends what was written; returns whether the client is still connected.
fn send(sender: &tokio::sync::mpsc::Sender<Chunk>, chunk: &mut Vec<u8>) -> bool {
    sender.blocking_send(Ok(std::mem::take(chunk).into())).is_ok()
}

pub(super) async fn one(
    State(app): State<Arc<App>>,
    uri: OriginalUri,
    parameters: Parameters,
    Path(name): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let facts = if parameters.is_on("facts") { WithFacts::Yes } else { WithFacts::No };
    let found = blocking(&app, move |app| app.check_ins.get(&name)?.whole()).await?;
    let found = found.ok_or_else(|| ApiError::not_found(&uri))?;
    Ok(Json(to_value(&app, &found, facts)))
}

/// Returns the names of the nodes that are in a group now: of those that have checked in, and of
/// those that `PuppetDB` knows.
pub(super) async fn of_group(
    State(app): State<Arc<App>>,
    answering: Answering,
    parameters: Parameters,
    uri: OriginalUri,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let index = find(&answering.snapshot.estate.hierarchy, &id, &uri)?;
    let snapshot = Arc::clone(&answering.snapshot);
    let permit = lookup().await?;
    let work = move || {
        let _permit = permit;
        members(&app, &snapshot, index)
    };
    let names = tokio::task::spawn_blocking(work).await;
    let names = names.map_err(|_| ApiError::internal("The nodes could not be read."))??;
    let page = parameters.page(names.into_iter().map(Value::from).collect())?;
    Ok(answering.json(Ok(json!({"nodes": page}))))
}

/// Returns who is in a group. A node that has checked in with facts is what it said then.
fn members(
    app: &App,
    snapshot: &Snapshot,
    group: GroupIndex,
) -> Result<BTreeSet<String>, ApiError> {
    let is_member = |node: &Node| {
        let explained = snapshot.classify(node);
        explained.is_ok_and(|it| it.matches.iter().any(|it| it.group == group))
    };
    let (mut members, mut settled, mut bare) = (BTreeSet::new(), HashSet::new(), Vec::new());
    let elsewhere = app.facts.elsewhere.as_ref();
    let mut lost = None;
    let read = app.check_ins.for_each(|check_in| {
        lost = lost.take().or_else(|| app.check_ins.lost(&check_in));
        let CheckIn { node, .. } = check_in;
        if elsewhere.is_some() && node.fact.is_empty() {
            bare.push(node);
            return;
        }
        if is_member(&node) {
            members.insert(node.name.clone());
        }
        settled.insert(node.name);
    });
    read?;
    // Nobody can tell whether that node is in the group.
    if let Some(lost) = lost {
        return Err(lost.into());
    }
    let Some(elsewhere) = elsewhere else { return Ok(members) };
    let query = inherited_rule(&snapshot.estate.hierarchy, group)
        .and_then(|rule| to_covering_query(&rule, QueryFormat::Inventory));
    elsewhere.find(query.as_ref(), &mut |node| {
        if !settled.contains(&node.name) && is_member(&node) {
            members.insert(node.name);
        }
    })?;
    // Of whom nobody has facts, the name alone decides.
    for node in bare.into_iter().filter(is_member) {
        if !members.contains(&node.name) && elsewhere.ask(&node.name)?.is_none() {
            members.insert(node.name);
        }
    }
    Ok(members)
}

/// Reads the store where it holds up nobody.
pub(super) async fn blocking<T: Send + 'static>(
    app: &Arc<App>,
    work: impl FnOnce(&App) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, ApiError> {
    let app = Arc::clone(app);
    let permit = lookup().await?;
    let work = move || {
        let _permit = permit;
        work(&app)
    };
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|_| ApiError::internal("The check-ins could not be read."))?;
    Ok(done?)
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let kind = if error.fault == Fault::Busy { "busy" } else { "storage-failed" };
        let message = format!("{}.", sentence(&error.to_string()));
        Self::new(StatusCode::SERVICE_UNAVAILABLE, kind, message, Value::Null)
            .with_header(header::RETRY_AFTER, "5")
    }
}

/// Writes a check-in; which groups matched is found out by what answers now.
fn to_value(app: &App, check_in: &CheckIn, facts: WithFacts) -> Value {
    let node = &check_in.node;
    // Without trusted data that are lost, an explanation would name the wrong groups.
    let snapshot = app.controller.snapshot().ok();
    let snapshot = snapshot.filter(|_| app.check_ins.lost(check_in).is_none());
    let mut document = snapshot
        .and_then(|snapshot| Some(classification::explanation(&snapshot.classify(node).ok()?)));
    let mut part = |key: &str| Some(document.as_mut()?.get_mut(key)?.take());
    let mut entry = Map::new();
    entry.insert("time".to_owned(), check_in.time.to_string().into());
    // A node in conflict has no classification.
    let classification = part("final_classification");
    entry.extend(classification.map(|it| ("classification".to_owned(), it)));
    let explanation = part("match_explanations").unwrap_or_else(|| json!({}));
    entry.insert("explanation".to_owned(), explanation);
    entry.insert("transaction_uuid".to_owned(), json!(check_in.transaction_uuid));
    if let Some(commit) = check_in.commit {
        entry.insert("commit".to_owned(), json!(commit));
    }
    let mut value = json!({
        "name": node.name,
        "check_ins": [entry],
        "transaction_uuid": check_in.transaction_uuid,
    });
    if let Value::Object(fields) = &mut value
        && facts == WithFacts::Yes
    {
        fields.insert("fact".to_owned(), node.fact.clone().into());
        fields.insert("trusted".to_owned(), node.trusted.clone().into());
    }
    value
}
