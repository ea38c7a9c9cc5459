//! Classifying nodes.

use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderValue;
use axum::response::Response;
use futures_util::FutureExt as _;
use futures_util::future::{Either, ready};

use super::body::{BodyText, check_values, read, to_json_within};
use super::check_in_recorder::CheckInRecorder;
use super::compute::{GROUP, NODES, TOOLS, weight};
use super::decisions::DecisionRequest;
use super::error::ApiError;
use super::explanation_limit::{check_explanation, check_inherited};
use super::node_lookup::{NodeLookup, TrustedSource};
use super::node_request::{NodeRequest, ProvedNode};
use super::openapi::errors::{
    BodyErrors, ClassificationErrors, EvaluationErrors, ExplanationErrors, FactsErrors,
    SnapshotErrors, UnknownNode,
};
use super::openapi::parameters::SnapshotParameters;
use super::original_uri::OriginalUri;
use super::privacy::PrivacyPolicy;
use super::snapshot_context::{MatchedGroups, SnapshotContext};
use super::state::Borrowed;
use super::types::{self, ClassifiedV2, NodeBody, shape};
use crate::classification::{
    self, ClassificationError, ClassificationFault, ExpansionFault, Explanation, Final, Match,
    Outcome, Version, WithheldFacts, conclude,
};
use crate::hierarchy::GroupIndex;
use crate::model::{Interpolation, NODE_VALUES};
use crate::rule::EvaluationError;
use crate::snapshot::{AnsweredNode, NoDocument};
use crate::store::Certname;
use crate::telemetry::ClassificationOutcome;

/// The content type of answers that are written as text.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Returns the groups that match a node.
pub(super) fn matched(context: &SnapshotContext, node: &ProvedNode) -> MatchedGroups {
    context.snapshot.index().matching(&context.snapshot.estate.hierarchy, node)
}

/// Classifies a node that some groups match, and counts how that ended.
fn explained<'a>(
    context: &'a SnapshotContext,
    node: &'a ProvedNode,
    groups: &MatchedGroups,
    withheld: WithheldFacts,
) -> Result<Explanation<'a>, ClassificationError> {
    let explained = match groups {
        Ok(groups) => conclude(&context.snapshot.estate, node, groups, withheld),
        Err(error) => Err(error.clone()),
    };
    if let Some(decisions) = &context.decisions {
        decisions.log_explained(&context.snapshot, node, &explained);
    }
    context.metrics.count(match &explained {
        Ok(it) if matches!(it.outcome, Outcome::Conflict(_)) => ClassificationOutcome::Conflict,
        Ok(_) => ClassificationOutcome::Answered,
        Err(error) => failure(error),
    });
    explained
}

/// Why a node has no classification.
#[derive(Debug)]
pub(super) enum Unclassified {
    /// It is not known what it gets.
    Failed(ClassificationError),
    /// Its groups are in conflict, as the answer says.
    InConflict(ApiError),
}

impl From<Unclassified> for ApiError {
    fn from(why: Unclassified) -> Self {
        match why {
            Unclassified::Failed(error) => error.into(),
            Unclassified::InConflict(error) => error,
        }
    }
}

/// Returns the groups of a node as they are kept with its answer: where there was none because facts could not be put
/// into a value, this error, as what is kept of the facts may be shorter.
pub(super) fn kept_groups<T>(
    groups: MatchedGroups,
    answer: &Result<T, Unclassified>,
) -> MatchedGroups {
    match answer {
        Err(Unclassified::Failed(error)) => Err(error.clone()),
        Err(Unclassified::InConflict(_)) | Ok(_) => groups,
    }
}

/// Returns how a failed classification is counted.
fn failure(error: &ClassificationError) -> ClassificationOutcome {
    match &error.cause {
        ClassificationFault::Rule(EvaluationError::Withheld { .. })
        | ClassificationFault::Value { fault: ExpansionFault::Withheld { .. }, .. } => {
            ClassificationOutcome::Withheld
        }
        ClassificationFault::Rule(EvaluationError::Steps { .. })
        | ClassificationFault::Value { fault: ExpansionFault::TooLong, .. } => {
            ClassificationOutcome::EvaluationError
        }
    }
}

/// Calls `use_it` with the classification of a node, or answers with why there is none.
pub(super) fn classified<T>(
    context: &SnapshotContext,
    node: &ProvedNode,
    withheld: WithheldFacts,
    use_it: impl FnOnce(&Explanation<'_>, &Final<'_>) -> T,
) -> Result<T, ApiError> {
    Ok(classified_by(context, node, &matched(context, node), withheld, use_it)?)
}

/// Calls `use_it` with the classification of a node that some groups match, or answers with why there is none.
pub(super) fn classified_by<T>(
    context: &SnapshotContext,
    node: &ProvedNode,
    groups: &MatchedGroups,
    withheld: WithheldFacts,
    use_it: impl FnOnce(&Explanation<'_>, &Final<'_>) -> T,
) -> Result<T, Unclassified> {
    let explanation = explained(context, node, groups, withheld).map_err(Unclassified::Failed)?;
    match &explanation.outcome {
        Outcome::Classified(result) => Ok(use_it(&explanation, result)),
        Outcome::Conflict(conflicts) => Err(Unclassified::InConflict(ApiError::conflict_in_words(
            &context.snapshot.estate.hierarchy,
            conflicts,
        ))),
    }
}

/// Of how many bytes of a body values are made without memory for them: what rules mention is mostly short, but for lists.
/// A thread that computes takes 600 KiB for them at the most.
const FEW_VALUES: usize = 4 << 10;

/// What classifies the node of a request.
struct NodeClassifier {
    recorder: Borrowed<CheckInRecorder>,
    context: SnapshotContext,
    request: NodeRequest,
    version: Version,
}

/// What became of a body that was read as text.
enum TextReading {
    Answered(Result<Response, ApiError>),
    /// Values have to be made of it.
    Declined(Box<(NodeClassifier, BodyText)>),
}

/// Answers with the classified document. It is a function of the body as it was read, so that the future of a handler
/// holds its services once and not twice.
fn document(
    classifier: NodeClassifier,
    body: Option<BodyText>,
) -> impl Future<Output = Result<Response, ApiError>> + Send {
    let text = match body {
        Some(text) if !classifier.request.is_own() => text,
        body => return Either::Left(classifier.answer_by_values(body)),
    };
    let weight = text.as_bytes().len();
    let read = NODES.run(weight, move || classifier.answer_by_text(text));
    Either::Right(read.then(|read| match read {
        Ok(TextReading::Answered(answer)) => Either::Left(ready(answer)),
        Ok(TextReading::Declined(declined)) => {
            let (classifier, text) = *declined;
            Either::Right(classifier.answer_by_values(Some(text)))
        }
        Err(error) => Either::Left(ready(Err(error))),
    }))
}

impl NodeClassifier {
    /// Classifies a node with the facts of a body. Nearly all bodies can be read without making values of what no rule
    /// reads.
    fn answer_by_text(self, body: BodyText) -> TextReading {
        match self.by_text(body.as_bytes(), FEW_VALUES) {
            Ok(Some(answer)) => TextReading::Answered(Ok(answer)),
            Ok(None) => TextReading::Declined(Box::new((self, body))),
            Err(error) => TextReading::Answered(Err(self.recorder.shown_error(error))),
        }
    }

    /// Returns none if values have to be made of the body, or of more than so many bytes of it.
    fn by_text(&self, bytes: &[u8], most: usize) -> Result<Option<Response>, ApiError> {
        check_values(bytes, NODE_VALUES)?;
        let Self { recorder, context, request, version } = self;
        let (index, hierarchy) = (context.snapshot.index(), &context.snapshot.estate.hierarchy);
        let read = index.read_with_values_of(most, request.name(), bytes);
        let Some(read) = read else { return Ok(None) };
        context.metrics.count_shape(read.shape);
        let groups = index.matches(hierarchy, &read.resolved);
        let took = elapsed(context);
        let answer =
            answer(context, &AnsweredNode::received(request.name(), &read), &groups, *version);
        let groups = kept_groups(groups, &answer);
        if request.is_kept() && context.is_of_node() {
            recorder.record_received(request.name(), &read, context, &groups);
        }
        if let Some(decisions) = &context.decisions {
            let input = [read.fact, read.trusted];
            let groups = slice(&groups);
            decisions.log_received(&context.snapshot, request.name(), input, groups, took);
        }
        Ok(Some(respond(context, answer)))
    }

    /// Classifies a node with the facts of a body, if there is one, once there is memory for its values. The future is
    /// boxed, since few bodies need one, and the futures of all would have room for it.
    fn answer_by_values(
        self,
        body: Option<BodyText>,
    ) -> Pin<Box<dyn Future<Output = Result<Response, ApiError>> + Send>> {
        Box::pin(async move {
            let bytes = match body {
                Some(body) => Some(body.with_values().await?),
                None => None,
            };
            let weight = bytes.as_ref().map_or(0, Bytes::len);
            let work = move || {
                let answer = self.with_memory(bytes.as_deref());
                answer.map_err(|error| self.recorder.shown_error(error))
            };
            NODES.run(weight, work).await?
        })
    }

    /// Classifies a node where values may be made of all that is in a body.
    fn with_memory(&self, bytes: Option<&[u8]>) -> Result<Response, ApiError> {
        if let Some(bytes) = bytes.filter(|_| !self.request.is_own())
            && let Some(answer) = self.by_text(bytes, usize::MAX)?
        {
            return Ok(answer);
        }
        self.by_values(bytes)
    }

    fn by_values(&self, bytes: Option<&[u8]>) -> Result<Response, ApiError> {
        let Self { recorder, context, request, version } = self;
        let body = bytes.map(|it| to_json_within(it, NODE_VALUES)).transpose()?;
        context.metrics.count_shape(shape(body.as_ref()));
        let has_body = body.is_some();
        let mut body = NodeBody::read(body)?;
        let transaction = body.transaction_uuid.take();
        let node = request.submitted(body);
        let groups = matched(context, &node);
        let took = elapsed(context);
        let answer = answer(context, &AnsweredNode::from(&*node), &groups, *version);
        let groups = kept_groups(groups, &answer);
        if has_body && request.is_kept() && context.is_of_node() {
            let answered = context.answered(&groups, Certname::AsSent);
            recorder.record(&node, context, answered, transaction);
        }
        if let Some(decisions) = &context.decisions {
            decisions.log_node(&context.snapshot, &node, slice(&groups), took);
        }
        Ok(respond(context, answer))
    }
}

/// Returns the time since the choice of the snapshot, if decisions are logged.
fn elapsed(context: &SnapshotContext) -> Duration {
    context.decisions.as_ref().map(DecisionRequest::elapsed).unwrap_or_default()
}

fn slice(groups: &MatchedGroups) -> Result<&[GroupIndex], &ClassificationError> {
    groups.as_ref().map(Vec::as_slice)
}

/// Writes the classified document of a node that some groups match, and counts how that ended.
fn answer(
    context: &SnapshotContext,
    node: &AnsweredNode<'_>,
    groups: &MatchedGroups,
    version: Version,
) -> Result<Vec<u8>, Unclassified> {
    let hierarchy = &context.snapshot.estate.hierarchy;
    let written = match groups {
        Err(error) => Err(NoDocument::Failed(error.clone())),
        Ok(groups) => context.classified(node, groups, version),
    };
    let (counted, answer) = match written {
        Ok(text) => (ClassificationOutcome::Answered, Ok(text)),
        Err(NoDocument::Conflict(conflicts)) => {
            let error = ApiError::conflict(hierarchy, &conflicts);
            (ClassificationOutcome::Conflict, Err(Unclassified::InConflict(error)))
        }
        Err(NoDocument::Failed(error)) => (failure(&error), Err(Unclassified::Failed(error))),
    };
    context.metrics.count(counted);
    answer
}

fn respond(context: &SnapshotContext, answer: Result<Vec<u8>, Unclassified>) -> Response {
    match answer {
        Ok(text) => context.respond_with(JSON, text),
        Err(why) => context.respond(ApiError::from(why)),
    }
}

/// Classifies a node by the facts of the request.
#[utoipa::path(
    post, path = "/v1/classified/nodes/{name}", operation_id = "classify_v1", tag = "Classification",
    params(("name" = String, Path), SnapshotParameters),
    request_body = NodeBody,
    responses(
        (status = 200, body = types::Classified),
        BodyErrors,
        ClassificationErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn v1(
    State(recorder): State<Borrowed<CheckInRecorder>>,
    context: SnapshotContext,
    request: NodeRequest,
    body: Body,
) -> Result<Response, ApiError> {
    let body = BodyText::read(body).await?;
    document(NodeClassifier { recorder, context, request, version: Version::V1 }, body).await
}

/// Classifies a node by the facts of the request.
#[utoipa::path(
    post, path = "/v2/classified/nodes/{name}", operation_id = "classify_v2", tag = "Classification",
    params(("name" = String, Path), SnapshotParameters),
    request_body = NodeBody,
    responses(
        (status = 200, body = ClassifiedV2),
        BodyErrors,
        ClassificationErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn v2(
    State(recorder): State<Borrowed<CheckInRecorder>>,
    context: SnapshotContext,
    request: NodeRequest,
    body: Body,
) -> Result<Response, ApiError> {
    let body = BodyText::read(body).await?;
    document(NodeClassifier { recorder, context, request, version: Version::V2 }, body).await
}

/// Classifies a node by its name.
#[utoipa::path(
    get, path = "/v1/classified/nodes/{name}", operation_id = "classify_by_name_v1", tag = "Classification",
    params(("name" = String, Path), SnapshotParameters),
    responses(
        (status = 200, body = types::Classified),
        ClassificationErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn v1_without_facts(
    State(recorder): State<Borrowed<CheckInRecorder>>,
    context: SnapshotContext,
    request: NodeRequest,
) -> Result<Response, ApiError> {
    document(NodeClassifier { recorder, context, request, version: Version::V1 }, None).await
}

/// Classifies a node by its name.
#[utoipa::path(
    get, path = "/v2/classified/nodes/{name}", operation_id = "classify_by_name_v2", tag = "Classification",
    params(("name" = String, Path), SnapshotParameters),
    responses(
        (status = 200, body = ClassifiedV2),
        ClassificationErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn v2_without_facts(
    State(recorder): State<Borrowed<CheckInRecorder>>,
    context: SnapshotContext,
    request: NodeRequest,
) -> Result<Response, ApiError> {
    document(NodeClassifier { recorder, context, request, version: Version::V2 }, None).await
}

/// Explains a classification; a conflict is not an error.
#[utoipa::path(
    post, path = "/v1/classified/nodes/{name}/explanation", operation_id = "explain", tag = "Classification",
    params(("name" = String, Path), SnapshotParameters),
    request_body = NodeBody,
    responses(
        (status = 200, body = types::Explanation),
        BodyErrors,
        EvaluationErrors,
        ExplanationErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn explanation(
    State(privacy): State<PrivacyPolicy>,
    context: SnapshotContext,
    request: NodeRequest,
    body: Body,
) -> Result<Response, ApiError> {
    let bytes = read(body).await?;
    let weight = all_groups(&context) + bytes.as_ref().map_or(0, Bytes::len);
    let explain = move || {
        let body = bytes.map(|it| to_json_within(&it, NODE_VALUES)).transpose();
        let body = body.and_then(|it| Ok(NodeBody::read(it)?));
        let body = body.map_err(|error| privacy.shown_error(error))?;
        Ok(explain(&context, &privacy, request.submitted(body)))
    };
    TOOLS.run(weight, explain).await?
}

/// Explains the classification of a node by what is known of it.
#[utoipa::path(
    get, path = "/v1/classified/nodes/{name}/explanation", operation_id = "explain_by_name", tag = "Classification",
    params(("name" = String, Path), SnapshotParameters),
    responses(
        (status = 200, body = types::Explanation),
        UnknownNode,
        EvaluationErrors,
        ExplanationErrors,
        FactsErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn explanation_by_name(
    State(lookup): State<NodeLookup>,
    State(privacy): State<PrivacyPolicy>,
    context: SnapshotContext,
    uri: OriginalUri,
    request: NodeRequest,
) -> Result<Response, ApiError> {
    let known = lookup.find(&request, TrustedSource::without_body(&request)).await?;
    let node = known.for_lookup(&context.snapshot, &uri)?;
    let weight = all_groups(&context) + weight(&node);
    TOOLS.run(weight, move || explain(&context, &privacy, node)).await
}

/// Returns what it weighs to ask every group.
fn all_groups(context: &SnapshotContext) -> usize {
    context.snapshot.estate.hierarchy.len() * GROUP
}

fn explain(context: &SnapshotContext, privacy: &PrivacyPolicy, node: ProvedNode) -> Response {
    // What is withheld is masked in what people are shown.
    let groups = matched(context, &node);
    let explained = explained(context, &node, &groups, WithheldFacts::Mark);
    let explained = explained.map_err(ApiError::from).and_then(|it| {
        check_explanation(it.matches.iter().map(Match::rule), &node)?;
        check_inherited(&it)?;
        let groups: Vec<GroupIndex> = it.matches.iter().map(|it| it.group).collect();
        Ok((classification::explanation_fields(&it), groups))
    });
    let (mut fields, groups) = match explained {
        Ok(explained) => explained,
        Err(error) => return context.respond(error),
    };
    if let Some(matches) = fields.get_mut("match_explanations") {
        privacy.mask_explanation(matches);
    }
    let node = privacy.shown(node.into_node());
    let estate = &context.snapshot.estate;
    if estate.interpolation == Interpolation::On {
        // What is masked is masked in values, too.
        match conclude(estate, &node, &groups, WithheldFacts::Mark) {
            Ok(shown) => fields.extend(classification::explained_values(&shown)),
            Err(error) => return context.respond(ApiError::from(error)),
        }
    }
    context.json(Ok(classification::explanation_with(node, fields)))
}
