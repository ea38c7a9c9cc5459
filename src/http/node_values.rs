//! What a known node gets: each value with its place, the ENC document, and whether a group has the node.
//!
//! Nothing here is a check-in: these are the questions of people.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::Response;

use super::blame::blame_error;
use super::blocking::REPOSITORY;
use super::classify::classified;
use super::compute::{TOOLS, weight};
use super::enc::YAML;
use super::error::ApiError;
use super::explanation_limit::check_membership;
use super::known_node::{answered, known};
use super::node_lookup::NodeLookup;
use super::node_request::{NodeRequest, ProvedNode};
use super::openapi::errors::{
    ClassificationErrors, EvaluationErrors, FactsErrors, MembershipErrors, SnapshotErrors,
    UnknownNode,
};
use super::openapi::parameters::{OneGroup, SnapshotParameters};
use super::openapi::responses::GroupInPathErrors;
use super::original_uri::OriginalUri;
use super::privacy::PrivacyPolicy;
use super::query::Parameters;
use super::snapshot_context::SnapshotContext;
use super::types::{GroupRef, LocatedValue, Membership, MembershipRule};
use crate::classification::{WithheldFacts, enc_document};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{GroupId, Node};
use crate::reconcile::{AskedNode, Controller};
use crate::rule;

/// For each value that a node gets, the group, file and line that define it.
#[utoipa::path(
    get, path = "/controller/nodes/{name}/values", operation_id = "node_values", tag = "Controller",
    params(("name" = String, Path), SnapshotParameters),
    responses(
        (status = 200, body = [LocatedValue]),
        UnknownNode,
        ClassificationErrors,
        FactsErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn values(
    State(controller): State<Arc<Controller>>,
    State(lookup): State<NodeLookup>,
    State(privacy): State<PrivacyPolicy>,
    context: SnapshotContext,
    uri: OriginalUri,
    request: NodeRequest,
) -> Result<Response, ApiError> {
    let (context, node) = answered(&lookup, context, &uri, &request).await?;
    let locate = move || {
        let node = node.into_node();
        let shown = privacy.masks().node(&node);
        let asked = AskedNode { node: &node, shown: &shown };
        let located = controller.locate(context.snapshot.commit, asked);
        let located = located.map_err(|error| blame_error(error, &uri));
        let values = located.map(|it| it.into_iter().map(LocatedValue::from).collect::<Vec<_>>());
        Ok::<_, ApiError>(context.json(values))
    };
    REPOSITORY.run(locate).await
}

/// The ENC document that a node gets, without a check-in: masked facts are marked in its values.
#[utoipa::path(
    get, path = "/controller/nodes/{name}/enc", operation_id = "node_enc", tag = "Controller",
    params(("name" = String, Path), SnapshotParameters),
    responses(
        (status = 200, body = String, content_type = "text/yaml"),
        UnknownNode,
        ClassificationErrors,
        FactsErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn enc(
    State(lookup): State<NodeLookup>,
    State(privacy): State<PrivacyPolicy>,
    context: SnapshotContext,
    uri: OriginalUri,
    request: NodeRequest,
) -> Result<Response, ApiError> {
    let node = known(&lookup, &context, &uri, &request).await?;
    let weight = weight(&node);
    let write = move || match shown_document(&context, &privacy, &node) {
        Ok(document) => context.respond(([(header::CONTENT_TYPE, YAML)], document)),
        Err(error) => context.respond(error),
    };
    TOOLS.run(weight, write).await
}

/// Writes the ENC document of a node with the values that people are shown.
fn shown_document(
    context: &SnapshotContext,
    privacy: &PrivacyPolicy,
    node: &ProvedNode,
) -> Result<String, ApiError> {
    classified(context, node, WithheldFacts::Mark, |_, result| {
        let mut result = result.clone();
        result.show_facts_of(&context.snapshot.estate, &privacy.masks().node(node))?;
        Ok(enc_document(&result))
    })?
}

/// Whether a node is in a group, and why: the rules of the group and of its ancestors, every term evaluated.
#[utoipa::path(
    get, path = "/controller/nodes/{name}/membership", operation_id = "membership", tag = "Controller",
    params(("name" = String, Path), OneGroup, SnapshotParameters),
    responses(
        (status = 200, body = Membership),
        GroupInPathErrors,
        UnknownNode,
        EvaluationErrors,
        MembershipErrors,
        FactsErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn membership(
    State(lookup): State<NodeLookup>,
    State(privacy): State<PrivacyPolicy>,
    context: SnapshotContext,
    parameters: Parameters,
    uri: OriginalUri,
    request: NodeRequest,
) -> Result<Response, ApiError> {
    let group = parameters.get("group").unwrap_or_default();
    let group = group.parse::<GroupId>().map_err(|_| ApiError::malformed_group(group))?;
    let group = context.snapshot.estate.hierarchy.find(group);
    let group = group.ok_or_else(|| context.named(ApiError::not_found(&uri)))?;
    let node = known(&lookup, &context, &uri, &request).await?;
    let weight = weight(&node);
    let explain = move || {
        let hierarchy = &context.snapshot.estate.hierarchy;
        let rules = hierarchy.lineage(group).filter_map(|it| hierarchy.group(it).rule.as_deref());
        let checked = check_membership(rules, &node);
        context.json(checked.map(|()| membership_of(hierarchy, group, &node.into_node(), &privacy)))
    };
    TOOLS.run(weight, explain).await
}

fn membership_of(
    hierarchy: &Hierarchy,
    group: GroupIndex,
    node: &Node,
    privacy: &PrivacyPolicy,
) -> Membership {
    let mut lineage: Vec<GroupIndex> = hierarchy.lineage(group).collect();
    lineage.reverse();
    let rules = lineage.into_iter().map(|index| {
        let group = hierarchy.group(index);
        let explained = group.rule.as_deref().map(|it| rule::explain(it, node));
        let holds = explained.as_ref().and_then(|it| it.outcome.clone().ok());
        let explanation = explained.map(|it| {
            let mut explanation = it.to_value();
            privacy.mask_explanation(&mut explanation);
            explanation
        });
        let group = GroupRef { id: group.id, name: group.name.clone() };
        MembershipRule { group, holds, explanation }
    });
    let rules: Vec<MembershipRule> = rules.collect();
    Membership::of(rules)
}
