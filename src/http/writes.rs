//! Writes: groups made, changed, removed, pinned to, imported.

use axum::body::Body;
use axum::response::Response;
use indexmap::IndexSet;
use serde_json::{Value, json};

use super::body::{HIERARCHY_VALUES, read_groups, read_json};
use super::error::ApiError;
use super::openapi::errors::{
    BodyErrors, DeltaErrors, EnvironmentErrors, NodesErrors, NotFound, RemovalErrors,
};
use super::openapi::parameters::Nodes;
use super::openapi::responses::{GroupInPathErrors, GroupWriteResponses, WriteResponses};
use super::path_parameter::PathParameter;
use super::query::Parameters;
use super::types::{Environment, ErrorKind, Group, NodesRequest, Unpinned};
use super::writing::Writing;
use crate::changeset::Operation;
use crate::model::{AGENT_SPECIFIED, EnvironmentName, GroupId, NODE_VALUES, NameError};

fn id_of(text: &str) -> Result<GroupId, ApiError> {
    text.parse().map_err(|_| ApiError::malformed_uuid(text))
}

/// Makes a group.
#[utoipa::path(
    post, path = "/v1/groups", operation_id = "create_group", tag = "Writes",
    request_body = Object,
    responses(
        (status = 303, description = "Made; `Location` is the path of the group", headers(("Location" = String))),
        BodyErrors,
        GroupWriteResponses,
    ),
)]
pub(super) async fn create(writing: Writing, body: Body) -> Result<Response, ApiError> {
    let body = read_groups(body, NODE_VALUES, "Group").await?.unwrap_or_default();
    let id = GroupId::from_random(fastrand::u128(..));
    writing.perform(body, |body| Operation::Create { id, body }).await
}

/// Makes or replaces a group.
#[utoipa::path(
    put, path = "/v1/groups/{id}", operation_id = "put_group", tag = "Writes",
    params(("id" = GroupId, Path)),
    request_body = Object,
    responses(
        (status = 200, body = Group, description = "It was so already"),
        (status = 201, body = Group, description = "Made or replaced"),
        BodyErrors,
        GroupInPathErrors,
        GroupWriteResponses,
    ),
)]
pub(super) async fn put(
    writing: Writing,
    PathParameter(id): PathParameter,
    body: Body,
) -> Result<Response, ApiError> {
    let id = id_of(&id)?;
    let body = read_groups(body, NODE_VALUES, "Group").await?.unwrap_or_default();
    writing.perform(body, |body| Operation::Put { id, body }).await
}

/// Changes parts of a group.
#[utoipa::path(
    post, path = "/v1/groups/{id}", operation_id = "update_group", tag = "Writes",
    params(("id" = GroupId, Path)),
    request_body = Object,
    responses(
        (status = 200, body = Group, description = "The group as it is now"),
        BodyErrors,
        GroupInPathErrors,
        GroupWriteResponses,
        DeltaErrors,
    ),
)]
pub(super) async fn edit(
    writing: Writing,
    PathParameter(id): PathParameter,
    body: Body,
) -> Result<Response, ApiError> {
    let id = id_of(&id)?;
    // No body changes nothing, as in Puppet Enterprise.
    let delta = read_groups(body, NODE_VALUES, "Group").await?.unwrap_or_else(|| json!({}));
    writing.perform(delta, |delta| Operation::Edit { id, delta }).await
}

/// Removes a group.
#[utoipa::path(
    delete, path = "/v1/groups/{id}", operation_id = "delete_group", tag = "Writes",
    params(("id" = GroupId, Path)),
    responses(
        (status = 204, description = "Done"),
        GroupInPathErrors,
        GroupWriteResponses,
    ),
)]
pub(super) async fn delete(
    writing: Writing,
    PathParameter(id): PathParameter,
) -> Result<Response, ApiError> {
    let id = id_of(&id)?;
    writing.perform(Value::Null, |_| Operation::Delete { id }).await
}

/// A node is pinned or unpinned by the same request.
async fn with_nodes(
    writing: Writing,
    parameters: &Parameters,
    body: Body,
    operation: impl FnOnce(Vec<String>) -> Operation,
) -> Result<Response, ApiError> {
    let (nodes, body) = nodes_of(parameters, body).await?;
    writing.perform(body, |_| operation(nodes)).await
}

/// Pins nodes to a group.
#[utoipa::path(
    post, path = "/v1/groups/{id}/pin", operation_id = "pin_nodes", tag = "Writes",
    params(("id" = GroupId, Path), Nodes),
    request_body = NodesRequest,
    responses(
        (status = 204, description = "Done"),
        BodyErrors,
        NodesErrors,
        GroupInPathErrors,
        GroupWriteResponses,
    ),
)]
pub(super) async fn pin(
    writing: Writing,
    parameters: Parameters,
    PathParameter(id): PathParameter,
    body: Body,
) -> Result<Response, ApiError> {
    let id = id_of(&id)?;
    with_nodes(writing, &parameters, body, |nodes| Operation::Pin { id, nodes }).await
}

/// Unpins nodes from a group.
#[utoipa::path(
    post, path = "/v1/groups/{id}/unpin", operation_id = "unpin_nodes", tag = "Writes",
    params(("id" = GroupId, Path), Nodes),
    request_body = NodesRequest,
    responses(
        (status = 204, description = "Done"),
        BodyErrors,
        NodesErrors,
        GroupInPathErrors,
        GroupWriteResponses,
    ),
)]
pub(super) async fn unpin(
    writing: Writing,
    parameters: Parameters,
    PathParameter(id): PathParameter,
    body: Body,
) -> Result<Response, ApiError> {
    let id = id_of(&id)?;
    with_nodes(writing, &parameters, body, |nodes| Operation::Unpin { id, nodes }).await
}

/// Unpins nodes from all groups.
#[utoipa::path(
    post, path = "/v1/commands/unpin-from-all", operation_id = "unpin_from_all", tag = "Writes",
    params(Nodes),
    request_body = NodesRequest,
    responses(
        (status = 200, body = Unpinned, description = "The nodes, and the groups that they were taken from"),
        BodyErrors,
        NodesErrors,
        GroupWriteResponses,
    ),
)]
pub(super) async fn unpin_from_all(
    writing: Writing,
    parameters: Parameters,
    body: Body,
) -> Result<Response, ApiError> {
    with_nodes(writing, &parameters, body, |nodes| Operation::UnpinFromAll { nodes }).await
}

/// Replaces all groups.
#[utoipa::path(
    post, path = "/v1/import-hierarchy", operation_id = "import_hierarchy", tag = "Writes",
    request_body = Vec<Object>,
    responses(
        (status = 204, description = "Done"),
        BodyErrors,
        GroupWriteResponses,
    ),
)]
pub(super) async fn import_hierarchy(writing: Writing, body: Body) -> Result<Response, ApiError> {
    let body = read_groups(body, HIERARCHY_VALUES, "[Group]").await?.unwrap_or_default();
    writing.perform(body, |body| Operation::Import { body }).await
}

/// Reads the name of an environment; `agent-specified` is none, but the choice of one.
pub(super) fn environment_of(name: &str) -> Result<EnvironmentName, ApiError> {
    let violation =
        |error: String| ApiError::schema_violation(name.into(), "Environment", error.into());
    let parsed: EnvironmentName =
        name.parse().map_err(|it: NameError| violation(it.to_string()))?;
    if parsed.is_agent_specified() {
        return Err(violation(AGENT_SPECIFIED.to_owned()));
    }
    Ok(parsed)
}

/// Makes an environment.
#[utoipa::path(
    put, path = "/v1/environments/{environment}", operation_id = "put_environment", tag = "Writes",
    params(("environment" = String, Path)),
    responses(
        (status = 200, body = Environment, description = "It exists, and nothing is committed"),
        (status = 201, body = Environment, description = "It is made"),
        EnvironmentErrors,
        WriteResponses,
    ),
)]
pub(super) async fn put_environment(
    writing: Writing,
    PathParameter(name): PathParameter,
) -> Result<Response, ApiError> {
    let name = environment_of(&name)?;
    writing.perform(Value::Null, |_| Operation::MakeEnvironment { name }).await
}

/// Removes an environment that no group has and that has no catalogue.
#[utoipa::path(
    delete, path = "/v1/environments/{environment}", operation_id = "delete_environment", tag = "Writes",
    params(("environment" = String, Path)),
    responses(
        (status = 204, description = "Done"),
        EnvironmentErrors,
        NotFound,
        RemovalErrors,
        WriteResponses,
    ),
)]
pub(super) async fn delete_environment(
    writing: Writing,
    PathParameter(name): PathParameter,
) -> Result<Response, ApiError> {
    let name = environment_of(&name)?;
    writing.perform(Value::Null, |_| Operation::RemoveEnvironment { name }).await
}

/// Returns the nodes that a request names, in its query and its body, and what to know it by.
async fn nodes_of(parameters: &Parameters, body: Body) -> Result<(Vec<String>, Value), ApiError> {
    let asked: Vec<&str> = parameters.all("nodes").collect();
    let body = read_json(body).await?.filter(|it| asked.is_empty() || !it.is_null());
    let in_body = body.as_ref().map(NodesRequest::read).transpose()?.flatten();
    if asked.is_empty() && in_body.is_none() {
        return Err(missing_nodes());
    }
    let names = asked.iter().flat_map(|it| it.split(',')).map(str::trim);
    let in_query = names.filter(|it| !it.is_empty()).map(str::to_owned);
    let nodes = each_once(in_query.chain(in_body.into_iter().flat_map(|it| it.nodes)));
    Ok((nodes, json!([asked, body])))
}

/// Returns the nodes without those that were named before.
fn each_once(nodes: impl IntoIterator<Item = String>) -> Vec<String> {
    nodes.into_iter().collect::<IndexSet<String>>().into_iter().collect()
}

fn missing_nodes() -> ApiError {
    let message = "The request must name nodes, by the query parameter `nodes` or by the key `nodes` of its body.";
    ApiError::new(ErrorKind::MissingParameters, message, Value::Null)
}
