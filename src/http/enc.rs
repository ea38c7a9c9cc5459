//! The ENC document, Hiera's data, and what clients of Foreman ask instead.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::access::{Caller, Role, denied};
use super::body::{read, read_json, to_json_within};
use super::check_in_recorder::CheckInRecorder;
use super::classify::{Unclassified, classified, classified_by, kept_groups, matched};
use super::compute::{NODES, weight};
use super::enc_cache::{CachedDocument, DocumentOrigin, EncCache};
use super::error::ApiError;
use super::node_lookup::{FactsPolicy, FactsSource, KnownNode, NodeLookup, TrustedSource};
use super::node_request::{NodeRequest, ProvedNode};
use super::openapi::errors::{BodyErrors, KeepErrors};
use super::openapi::parameters::SnapshotParameters;
use super::openapi::responses::{ByFactsErrors, ByNameErrors};
use super::original_uri::OriginalUri;
use super::privacy::PrivacyPolicy;
use super::server::MemoryReservation;
use super::snapshot_context::{MatchedGroups, SnapshotContext};
use super::state::Borrowed;
use super::types::{EncDocument, FactsUpload, NodeBody, StoredFacts};
use crate::classification::{self, WithheldFacts};
use crate::hierarchy::GroupIndex;
use crate::model::NODE_VALUES;
use crate::reconcile::Controller;
use crate::store::{Received, SaidPart};
use crate::telemetry::ClassificationOutcome;

/// The content type of the ENC document.
pub(super) const YAML: HeaderValue = HeaderValue::from_static("text/yaml; charset=utf-8");

/// Prints the ENC document of a node that some groups match.
fn document(
    context: &SnapshotContext,
    node: &ProvedNode,
    groups: &MatchedGroups,
) -> Result<CachedDocument, Unclassified> {
    classified_by(context, node, groups, WithheldFacts::Refuse, |explanation, result| {
        let groups: Box<[GroupIndex]> = explanation.matches.iter().map(|it| it.group).collect();
        let is_decided = context.snapshot.is_decided_by(&groups, &node.name);
        let text = Bytes::from(classification::enc_document(result));
        CachedDocument { text, groups: is_decided.then_some(groups) }
    })
}

fn respond(context: &SnapshotContext, document: Result<Bytes, ApiError>) -> Response {
    match document {
        Ok(text) => context.respond_with(YAML, text),
        Err(error) => context.respond(error.into_response()),
    }
}

/// Answers from what is known of a node.
async fn by_name(
    lookup: &NodeLookup,
    cache: &EncCache,
    context: SnapshotContext,
    uri: &OriginalUri,
    request: NodeRequest,
) -> Result<Response, ApiError> {
    // Files and `PuppetDB` change without notice, and a node's own certificate replaces what was kept.
    let FactsPolicy { directory, puppetdb, .. } = &lookup.policy;
    let source = TrustedSource::without_body(&request);
    let is_shared = source == TrustedSource::Store;
    // A logged decision says what the node was classified by.
    let is_quiet = context.decisions.is_none();
    let is_cacheable = directory.is_none() && puppetdb.is_none() && is_shared && is_quiet;
    // Other daemons that write to the store do not say so.
    let removals = lookup.check_ins.removals().filter(|_| is_cacheable);
    let cached =
        removals.map(|removals| DocumentOrigin { commit: context.snapshot.commit, removals });
    let reservation = match cached.map(|origin| cache.find(request.name(), origin)) {
        Some(Ok(document)) => {
            context.metrics.count(ClassificationOutcome::Answered);
            return Ok(respond(&context, Ok(document)));
        }
        Some(Err(reservation)) => Some(reservation),
        None => None,
    };
    // Boxed: the futures of cached documents would have room for it.
    Box::pin(async move {
        let known = lookup.find(&request, source).await?;
        let node = known.for_classification(&lookup.policy, uri)?;
        let weight = weight(&node);
        let print = move || {
            let document = document(&context, &node, &matched(&context, &node));
            (context, document)
        };
        let (context, document) = NODES.run(weight, print).await?;
        if let (Some(reservation), Ok(text)) = (&reservation, &document) {
            cache.insert(request.name(), reservation, text.clone());
        }
        Ok(respond(&context, document.map(|it| it.text).map_err(ApiError::from)))
    })
    .await
}

/// The ENC document of a node, by the facts that it checked in with.
#[utoipa::path(
    get, path = "/enc/{certname}", operation_id = "enc", tag = "Puppet Server and Hiera",
    params(("certname" = String, Path), SnapshotParameters),
    responses(
        (status = 200, body = EncDocument, content_type = "text/yaml"),
        ByNameErrors,
    ),
)]
pub(super) async fn without_facts(
    State(lookup): State<Borrowed<NodeLookup>>,
    State(cache): State<Borrowed<EncCache>>,
    context: SnapshotContext,
    uri: OriginalUri,
    request: NodeRequest,
) -> Result<Response, ApiError> {
    by_name(&lookup, &cache, context, &uri, request).await
}

/// The same, for Foreman's clients.
#[utoipa::path(
    get, path = "/node/{certname}", operation_id = "foreman_node", tag = "Puppet Server and Hiera",
    params(("certname" = String, Path), SnapshotParameters),
    responses(
        (status = 200, body = EncDocument, content_type = "text/yaml"),
        ByNameErrors,
    ),
)]
pub(super) async fn for_foreman(
    State(lookup): State<Borrowed<NodeLookup>>,
    State(cache): State<Borrowed<EncCache>>,
    context: SnapshotContext,
    uri: OriginalUri,
    request: NodeRequest,
) -> Result<Response, ApiError> {
    by_name(&lookup, &cache, context, &uri, request).await
}

/// The ENC document of a node, by the facts of the request.
#[utoipa::path(
    post, path = "/enc/{certname}", operation_id = "enc_with_facts", tag = "Puppet Server and Hiera",
    params(("certname" = String, Path), SnapshotParameters),
    request_body = NodeBody,
    responses(
        (status = 200, body = EncDocument, content_type = "text/yaml"),
        ByFactsErrors,
    ),
)]
pub(super) async fn with_facts(
    State(lookup): State<Borrowed<NodeLookup>>,
    State(cache): State<Borrowed<EncCache>>,
    State(recorder): State<Borrowed<CheckInRecorder>>,
    context: SnapshotContext,
    uri: OriginalUri,
    request: NodeRequest,
    body: Body,
) -> Result<Response, ApiError> {
    let submission = Submission::read(&request, body).await;
    let (node, kept_facts) = match submission.map_err(|error| recorder.shown_error(error))? {
        Submission::Nothing => return by_name(&lookup, &cache, context, &uri, request).await,
        Submission::Facts(node) => (node, KeptFacts::Sent),
        Submission::Trusted(trusted) => {
            let known = lookup.find(&request, TrustedSource::Request).await?;
            let kept_facts = match &known {
                // Kept facts would hide what the file or `PuppetDB` says later.
                KnownNode::Facts(_, FactsSource::External) => KeptFacts::None,
                _ => KeptFacts::Known,
            };
            let known = known.for_classification(&lookup.policy, &uri)?.into_node();
            (request.node(known.fact, trusted), kept_facts)
        }
    };
    let node = node.with_certname();
    let weight = weight(&node);
    let print = move || {
        let groups = matched(&context, &node);
        let document = document(&context, &node, &groups);
        let groups = kept_groups(groups, &document);
        if request.is_kept() && context.is_of_node() {
            let answered = context.answered(&groups, node.certname());
            let sent = node.into_sent();
            match kept_facts {
                KeptFacts::Sent => recorder.record(&sent, &context, answered, None),
                KeptFacts::Known => recorder.record_trusted(&sent, &context, answered),
                KeptFacts::None => recorder.record_without_facts(&sent, &context, answered),
            }
        }
        respond(&context, document.map(|it| it.text).map_err(ApiError::from))
    };
    NODES.run(weight, print).await
}

/// Which facts of a node are kept with its check-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeptFacts {
    /// Those that were sent.
    Sent,
    /// Those that are known: what comes in meanwhile stays.
    Known,
    None,
}

/// What a body submits of a node.
enum Submission {
    /// Facts, and with them all that is known of the node.
    Facts(ProvedNode),
    /// Trusted data; the facts are those that are known.
    Trusted(Map<String, Value>),
    /// Nothing: there is no body, or neither facts nor trusted data in it.
    Nothing,
}

impl Submission {
    async fn read(request: &NodeRequest, body: Body) -> Result<Self, ApiError> {
        let Some(body) = read_json(body).await? else { return Ok(Self::Nothing) };
        // As with facts: a node has trusted data, and where there is none the client does not have it.
        let has_trusted =
            body.get("trusted").and_then(Value::as_object).is_some_and(|it| !it.is_empty());
        let mut body = NodeBody::read(Some(wrap_facts(body)?))?;
        // Agents can forge it, and an ENC is asked by what they say.
        body.fact.shift_remove("trusted");
        let node = request.submitted(body);
        Ok(match has_trusted {
            // No node has no facts: facts without any are facts that the client does not have.
            _ if !node.fact.is_empty() => Self::Facts(node),
            true => Self::Trusted(node.into_node().trusted),
            false => Self::Nothing,
        })
    }
}

/// What a body has beside trusted data where it is not a hash of facts.
const BESIDE_TRUSTED: [&str; 6] =
    ["trusted", "transaction_uuid", "name", "certname", "environment", "requested_environment"];

/// A hash of facts alone is taken for facts.
///
/// Returns an error for one with a fact `trusted`, which anyone can send: it must not be taken for trusted data.
fn wrap_facts(mut body: Value) -> Result<Value, ApiError> {
    let Value::Object(fields) = &mut body else { return Ok(body) };
    if fields.is_empty() || ["fact", "facts"].into_iter().any(|key| fields.contains_key(key)) {
        return Ok(body);
    }
    if !fields.contains_key("trusted") {
        let fact = std::mem::take(fields);
        fields.insert("fact".to_owned(), fact.into());
        return Ok(body);
    }
    match fields.keys().find(|it| !BESIDE_TRUSTED.contains(&it.as_str())) {
        None => Ok(body),
        Some(key) => {
            let message = format!(
                "The body has `trusted` beside `{key}`: put facts below `fact`, and trusted data below `trusted`."
            );
            Err(ApiError::schema_violation(body, "Node", message.into()))
        }
    }
}

/// Stores facts, as Foreman's clients send them: on disk before the answer.
#[utoipa::path(
    post, path = "/api/hosts/facts", operation_id = "foreman_facts", tag = "Puppet Server and Hiera",
    request_body = FactsUpload,
    responses(
        (status = 201, body = StoredFacts, description = "The facts are on disk, or in memory without `--data-dir`"),
        BodyErrors,
        KeepErrors,
    ),
)]
pub(super) async fn upload_facts(
    State(recorder): State<CheckInRecorder>,
    State(controller): State<Arc<Controller>>,
    caller: Caller,
    body: Body,
) -> Result<Response, ApiError> {
    let bytes = read(body).await?.unwrap_or_default();
    let weight = bytes.len();
    let take = move || match bytes.len() {
        0 => uploaded(Value::Null),
        _ => uploaded(to_json_within(&bytes, NODE_VALUES)?),
    };
    let taken = NODES.run(weight, take).await?;
    let (name, fact) = taken.map_err(|error| recorder.shown_error(error))?;
    let request = NodeRequest::of_upload(&caller, name);
    if !request.is_kept() {
        return Err(denied(&caller, Role::CheckIn));
    }
    // The store may be waited for: the values are gone.
    MemoryReservation::of_request().keep_text(fact.len());
    let (trusted, said) = match request.proved_trusted() {
        Some(proved) => (proved, SaidPart::Both),
        // What the node proved before stays.
        // With a damaged store put aside, what it proved may be lost: then requests without a body get
        // 503 until it is proved again, see `Stored::lost`.
        None => (Map::new(), SaidPart::Facts),
    };
    let trusted = Value::from(trusted).to_string();
    let (time, name) = (Timestamp::now(), request.name());
    let (fact, trusted) = (fact.as_str(), trusted.as_str());
    let received = Received {
        time,
        transaction_uuid: None,
        commit: None,
        answered: None,
        name,
        fact,
        trusted,
        said,
        form: None,
    };
    let live = controller.snapshot().ok();
    recorder.record_durably(received, live.as_deref()).await?;
    let message = if recorder.is_durable() {
        "Facts were stored"
    } else {
        "Facts were stored in memory, until the daemon stops: it has no --data-dir"
    };
    let (name, message) = (name.to_owned(), message.to_owned());
    let answer = StoredFacts { id: 1, name, message };
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

/// Returns the certname and the text of the facts; of a large body no more stays in memory.
fn uploaded(body: Value) -> Result<(String, String), ApiError> {
    let FactsUpload { certname, name, facts } = FactsUpload::read(body)?;
    let text = serde_json::to_string(&facts);
    let text = text.map_err(|_| ApiError::internal("The facts could not be written."))?;
    Ok((certname.or(name).unwrap_or_default(), text))
}

/// Config data for Hiera: `{"class::key": value}`.
#[utoipa::path(
    get, path = "/hiera/{certname}", operation_id = "hiera", tag = "Puppet Server and Hiera",
    params(("certname" = String, Path), SnapshotParameters),
    responses(
        (status = 200, body = Object),
        ByNameErrors,
    ),
)]
pub(super) async fn hiera(
    State(lookup): State<NodeLookup>,
    context: SnapshotContext,
    uri: OriginalUri,
    request: NodeRequest,
) -> Result<Response, ApiError> {
    config_data_by_name(&lookup, context, &uri, &request).await
}

/// Config data for Hiera, by the facts of the request: any daemon can answer; nothing is kept.
#[utoipa::path(
    post, path = "/hiera/{certname}", operation_id = "hiera_with_facts", tag = "Puppet Server and Hiera",
    params(("certname" = String, Path), SnapshotParameters),
    request_body = NodeBody,
    responses(
        (status = 200, body = Object),
        ByFactsErrors,
    ),
)]
pub(super) async fn hiera_with_facts(
    State(lookup): State<NodeLookup>,
    State(privacy): State<PrivacyPolicy>,
    context: SnapshotContext,
    uri: OriginalUri,
    request: NodeRequest,
    body: Body,
) -> Result<Response, ApiError> {
    let submission = Submission::read(&request, body).await;
    let node = match submission.map_err(|error| privacy.shown_error(error))? {
        Submission::Nothing => return config_data_by_name(&lookup, context, &uri, &request).await,
        Submission::Facts(node) => node.with_certname(),
        Submission::Trusted(trusted) => {
            let known = lookup.find(&request, TrustedSource::Request).await?;
            let known = known.for_lookup(&context.snapshot, &uri)?.into_node();
            request.node(known.fact, trusted).with_certname()
        }
    };
    config_data(context, node).await
}

/// Returns the config data of a node that is known.
async fn config_data_by_name(
    lookup: &NodeLookup,
    context: SnapshotContext,
    uri: &OriginalUri,
    request: &NodeRequest,
) -> Result<Response, ApiError> {
    let known = lookup.find(request, TrustedSource::without_body(request)).await?;
    let node = known.for_lookup(&context.snapshot, uri)?;
    config_data(context, node).await
}

async fn config_data(context: SnapshotContext, node: ProvedNode) -> Result<Response, ApiError> {
    let weight = weight(&node);
    let write = move || {
        // No facts are put into config data, so none is missed.
        let answer = classified(&context, &node, WithheldFacts::Mark, |_, result| {
            classification::hiera(result)
        });
        context.json(answer)
    };
    NODES.run(weight, write).await
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use serde_json::json;

    use crate::http::fixture::Fixture;
    use crate::http::privacy::PrivacyPolicy;
    use crate::http::request_context::RequestContext;
    use crate::http::router::RouteSet;
    use crate::rule::search_steps;

    #[tokio::test]
    async fn a_node_is_matched_once_for_its_document_and_its_check_in() {
        // A pattern that is searched step by step.
        let group = "name: A\nrule: ['~', [fact, x], '(?<![0-9])[a-f][0-9]{1,4}(?![0-9])x']\n";
        let fixture = Fixture::of(RouteSet::Whole, ["name: A\n", group], PrivacyPolicy::default());
        let steps = async |path: &str| {
            let body = json!({"fact": {"x": "a12 ".repeat(50)}}).to_string();
            let mut request = Request::post(path).body(body.into()).unwrap();
            RequestContext::of_mut(request.extensions_mut()).peer.is_local = true;
            let before = search_steps();
            assert_eq!(fixture.answer(request).await.status(), 200);
            search_steps() - before
        };
        let once = steps("/v1/classified/nodes/n").await;
        assert!(once > 0);
        assert_eq!(steps("/enc/n").await, once);
    }
}
