//! The ENC document, Hiera's data, and what clients of Foreman ask instead.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::access::{Caller, Role, Submitted, denied};
use super::answer::Answering;
use super::body::{node, read, read_json, to_json_within};
use super::check_ins::{keep, note};
use super::classify::classified;
use super::compute::{NODES, weight};
use super::error::ApiError;
use super::router::App;
use super::server::Room;
use crate::classification;
use crate::facts::{read_cached, read_file, trusted_data, with_certname};
use crate::model::{NODE_VALUES, Node};
use crate::store::{Received, StoreError, Stored};
use crate::telemetry::Classified;

/// Where the facts of a node come from that sends none: its last check-in, or a file.
#[derive(Clone, Debug, Default)]
pub struct FactsPolicy {
    /// Facts files by certname, as Puppet Server keeps them.
    pub directory: Option<Arc<PathBuf>>,
    /// Who else knows facts, such as `PuppetDB`.
    pub elsewhere: Option<Elsewhere>,
    /// Whether the name alone is not enough.
    pub required: bool,
}

/// What is asked for a node, off the threads that answer.
type Ask = dyn Fn(&str) -> Result<Option<Node>, String> + Send + Sync;

/// What is asked for nodes; the query, in the form for the inventory, may be left out.
type Find = dyn Fn(Option<&Value>, &mut dyn FnMut(Node)) -> Result<(), String> + Send + Sync;

/// Somebody who knows facts of nodes.
#[derive(Clone)]
pub struct Elsewhere {
    ask: Arc<Ask>,
    find: Arc<Find>,
}

impl Elsewhere {
    /// Makes one of a function from a certname to what is known of the node, if it is known, and
    /// one that hands out the nodes that a query finds.
    pub fn new(
        ask: impl Fn(&str) -> Result<Option<Node>, String> + Send + Sync + 'static,
        find: impl Fn(Option<&Value>, &mut dyn FnMut(Node)) -> Result<(), String>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { ask: Arc::new(ask), find: Arc::new(find) }
    }

    /// Returns what is known of a node. Blocking.
    pub(super) fn ask(&self, name: &str) -> Result<Option<Node>, ApiError> {
        // Without an answer nobody can tell what the node is: that is not the same as no facts.
        (self.ask)(name).map_err(|error| {
            ApiError::internal(format!("The facts of {name} cannot be asked for: {error}."))
        })
    }

    /// Hands out the nodes that a query of the inventory finds, or all. Blocking.
    pub(super) fn find(
        &self,
        query: Option<&Value>,
        each: &mut dyn FnMut(Node),
    ) -> Result<(), ApiError> {
        (self.find)(query, each)
            .map_err(|error| ApiError::internal(format!("The nodes cannot be asked for: {error}.")))
    }
}

impl std::fmt::Debug for Elsewhere {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Elsewhere").finish_non_exhaustive()
    }
}

/// Prints the ENC document. The certname is that of the URL, so it is as trusted as the caller.
fn document(answering: &Answering, mut node: Node) -> Result<Bytes, ApiError> {
    answering.believe(&mut node);
    node.trusted = with_certname(Some(std::mem::take(&mut node.trusted)), &node.name);
    let answer = classified(answering, &node, |_, result| classification::enc_document(result));
    answer.map(Bytes::from)
}

fn respond(answering: &Answering, document: Result<Bytes, ApiError>) -> Response {
    match document {
        Ok(text) => answering.respond(([(header::CONTENT_TYPE, "text/yaml; charset=utf-8")], text)),
        Err(error) => answering.respond(error.into_response()),
    }
}

/// Answers from what is known of a node.
async fn by_name(app: &App, answering: Answering, name: String) -> Result<Response, ApiError> {
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
    let node = known_node(app, name.clone(), source).await?;
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
    answering: Answering,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    by_name(&app, answering, name).await
}

pub(super) async fn with_facts(
    State(app): State<Arc<App>>,
    answering: Answering,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let Some(body) = read_json(body).await? else {
        return by_name(&app, answering, name).await;
    };
    let mut node = if says_trusted_data_alone(&body) {
        let Node { trusted, .. } = node(name.clone(), Some(body))?;
        Node { trusted, ..known_node(&app, name, TrustedSource::Request).await? }
    } else {
        node(name, Some(as_facts(body)))?
    };
    let weight = weight(&node);
    let print = move || {
        answering.believe(&mut node);
        if answering.submitted(&node.name).is_kept() {
            note(&app, &node, Some(answering.snapshot.commit), None);
        }
        let document = document(&answering, node);
        respond(&answering, document)
    };
    NODES.run(weight, print).await
}

/// Whoever has no facts at hand may still say what the certificate proves.
fn says_trusted_data_alone(body: &Value) -> bool {
    let says = |key: &str| body.get(key).is_some_and(|it| !it.is_null());
    says("trusted") && !says("fact") && !says("facts")
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
    let trusted = match submitted.proved() {
        Some(proved) => trusted_data(&name, Some(proved.clone())),
        // What the node proved before stays.
        // With a damaged store put aside, what it proved may be lost: then bodyless questions get 503
        // until it is proved again, see `Stored::lost`.
        None => {
            stored(&app, name.clone()).await?.check_in.map(|it| it.node.trusted).unwrap_or_default()
        }
    };
    let trusted = Value::from(trusted).to_string();
    let (time, name) = (Timestamp::now(), name.as_str());
    let (fact, trusted) = (fact.as_str(), trusted.as_str());
    let received = Received { time, transaction_uuid: None, commit: None, name, fact, trusted };
    // A disk may be waited for: the values are gone.
    Room::of_request().keep_text(fact.len());
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
    let text = serde_json::to_string(facts);
    let text = text.map_err(|_| ApiError::internal("The facts could not be written."))?;
    Ok((name, text))
}

pub(super) async fn hiera(
    State(app): State<Arc<App>>,
    answering: Answering,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    let source = TrustedSource::of(&answering.submitted(&name));
    let node = met_node(&app, name, source).await?;
    config_data(answering, node).await
}

/// Returns the config data of a node whose facts come along: any daemon can answer, whichever the
/// node has checked in with. Nothing is kept.
pub(super) async fn hiera_with_facts(
    State(app): State<Arc<App>>,
    answering: Answering,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    let node = match read_json(body).await? {
        None => {
            let source = TrustedSource::of(&answering.submitted(&name));
            met_node(&app, name, source).await?
        }
        Some(body) if says_trusted_data_alone(&body) => {
            let Node { trusted, .. } = node(name.clone(), Some(body))?;
            Node { trusted, ..met_node(&app, name, TrustedSource::Request).await? }
        }
        Some(body) => node(name, Some(as_facts(body)))?,
    };
    config_data(answering, node).await
}

async fn config_data(answering: Answering, mut node: Node) -> Result<Response, ApiError> {
    let weight = weight(&node);
    let write = move || {
        answering.believe(&mut node);
        node.trusted = with_certname(Some(std::mem::take(&mut node.trusted)), &node.name);
        let answer = classified(&answering, &node, |_, result| classification::hiera(result));
        answering.json(answer)
    };
    NODES.run(weight, write).await
}

/// Where the trusted data of a node come from that is asked about without facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrustedSource {
    /// The request brings them along: its certificate or its body.
    Request,
    /// What was kept.
    Store,
}

impl TrustedSource {
    /// Returns the source for a request without a body.
    pub(super) fn of(submitted: &Submitted) -> Self {
        if submitted.proved().is_some() { Self::Request } else { Self::Store }
    }
}

/// What is known of a node.
pub(super) enum Known {
    /// Its last check-in, a file of facts, or what `PuppetDB` says.
    Met(Node),
    /// Its name alone.
    Named(String),
}

/// Returns what is known of a node, its name alone where that is enough here.
async fn known_node(app: &App, name: String, source: TrustedSource) -> Result<Node, ApiError> {
    match known(app, name, source).await? {
        Known::Met(node) => Ok(node),
        Known::Named(name) if app.facts.required => {
            let message = format!(
                "No facts of the node `{name}` are known: it has not checked in, and its name alone is not enough here."
            );
            let path = format!("/enc/{name}");
            Err(ApiError::new(StatusCode::NOT_FOUND, "not-found", message, path))
        }
        Known::Named(name) => Ok(Node::named(name)),
    }
}

/// Returns what is known of a node that is known: a node that has checked in with another daemon
/// must not look like one without data.
async fn met_node(app: &App, name: String, source: TrustedSource) -> Result<Node, ApiError> {
    match known(app, name, source).await? {
        Known::Met(node) => Ok(node),
        Known::Named(name) => {
            let message = format!(
                "The node `{name}` is not known to this daemon: it has not checked in here. Send its facts along with POST, or ask the daemon that classified it."
            );
            let path = format!("/hiera/{name}");
            Err(ApiError::new(StatusCode::NOT_FOUND, "not-found", message, path))
        }
    }
}

pub(super) async fn known(
    app: &App,
    name: String,
    source: TrustedSource,
) -> Result<Known, ApiError> {
    let Stored { check_in, lost } = stored(app, name.clone()).await?;
    let last = check_in.map(|it| it.node);
    // Facts without the trusted data that were lost are less than what was known of the node.
    let is_enough = |node: &Node| {
        lost.is_none() || source == TrustedSource::Request || !node.trusted.is_empty()
    };
    // A node can have asked without facts; then others may know some.
    let last = match last {
        Some(node) if !node.fact.is_empty() && is_enough(&node) => return Ok(Known::Met(node)),
        last => last,
    };
    let (policy, wanted) = (app.facts.clone(), name.clone());
    let found = tokio::task::spawn_blocking(move || kept_node(&policy, &wanted)).await;
    let found = found.map_err(|_| ApiError::internal("The facts could not be read."))??;
    if let Some(mut node) = found {
        // Files know facts; what the node proved when it checked in stays proved.
        if let Some(last) = last.filter(|_| node.trusted.is_empty()) {
            node.trusted = last.trusted;
        }
        return match lost.clone().filter(|_| !is_enough(&node)) {
            Some(error) => Err(error.into()),
            None => Ok(Known::Met(node)),
        };
    }
    match (lost, last) {
        (Some(error), _) => Err(error.into()),
        (None, Some(node)) if !app.facts.required => Ok(Known::Met(node)),
        (None, _) => Ok(Known::Named(name)),
    }
}

/// Looks where facts are kept.
fn kept_node(policy: &FactsPolicy, name: &str) -> Result<Option<Node>, ApiError> {
    if let Some(directory) = &policy.directory
        && let Some(fact) = facts_of(directory, name)?
    {
        return Ok(Some(Node { fact, ..Node::named(name.to_owned()) }));
    }
    policy.elsewhere.as_ref().map_or(Ok(None), |it| it.ask(name))
}

async fn stored(app: &App, name: String) -> Result<Stored, StoreError> {
    let (store, admit) = (app.check_ins.clone(), Room::admits_rows());
    let found = tokio::task::spawn_blocking(move || store.get_within(&name, &admit)).await;
    found.unwrap_or_else(|_| Err(StoreError::interrupted()))
}

/// Reads the facts file of a node.
fn facts_of(directory: &FilePath, name: &str) -> Result<Option<Map<String, Value>>, ApiError> {
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\', '\0']) {
        return Ok(None);
    }
    for extension in ["json", "yaml"] {
        let path = directory.join(format!("{name}.{extension}"));
        let bytes = match read_file(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => {
                return Err(ApiError::internal(format!(
                    "The facts of {name} cannot be read: {error}."
                )));
            }
        };
        let fact = read_cached(&bytes, name).map_err(|error| {
            ApiError::internal(format!("The facts of {name} cannot be read: {error}."))
        })?;
        return Ok(Some(fact));
    }
    Ok(None)
}
