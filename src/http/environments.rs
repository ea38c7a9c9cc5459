//! Classes, environments, check-ins, and the writes that a read-only daemon refuses.

use axum::response::{IntoResponse as _, Response};

use super::access::Caller;
use super::error::ApiError;
use super::openapi::errors::{NotFound, PageErrors, SnapshotErrors};
use super::openapi::parameters::{Page, SnapshotParameters};
use super::original_uri::OriginalUri;
use super::path_parameter::{PathParameter, PathParameters};
use super::query::Parameters;
use super::snapshot_context::SnapshotContext;
use super::types::{Class, Environment};
use crate::reconcile::{Controller, path_below};

/// Lists the classes of all environments.
#[utoipa::path(
    get, path = "/v1/classes", operation_id = "list_classes", tag = "Classes and environments",
    params(SnapshotParameters, Page),
    responses(
        (status = 200, body = [Class]),
        PageErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn classes(context: SnapshotContext, parameters: Parameters) -> Response {
    let catalogues = &context.snapshot.estate.catalogues;
    let all = catalogues.iter().flat_map(|(name, catalogue)| Class::all_of(name, catalogue));
    context.json(parameters.page(all.collect()))
}

/// Lists the environments.
#[utoipa::path(
    get, path = "/v1/environments", operation_id = "list_environments", tag = "Classes and environments",
    params(SnapshotParameters, Page),
    responses(
        (status = 200, body = [Environment]),
        PageErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn environments(context: SnapshotContext, parameters: Parameters) -> Response {
    let known = context.snapshot.estate.environment_names();
    let all = known.into_iter().cloned().map(Environment::named).collect();
    context.json(parameters.page(all))
}

/// Shows an environment.
#[utoipa::path(
    get, path = "/v1/environments/{environment}", operation_id = "environment", tag = "Classes and environments",
    params(("environment" = String, Path), SnapshotParameters),
    responses(
        (status = 200, body = Environment),
        NotFound,
        SnapshotErrors,
    ),
)]
pub(super) async fn environment(
    context: SnapshotContext,
    uri: OriginalUri,
    PathParameter(name): PathParameter,
) -> Response {
    let known = context.snapshot.estate.environment_names();
    let found = known.into_iter().find(|it| it.as_str() == name).cloned();
    context.json(found.map(Environment::named).ok_or_else(|| ApiError::not_found(&uri)))
}

/// Lists the classes of an environment.
#[utoipa::path(
    get, path = "/v1/environments/{environment}/classes", operation_id = "list_environment_classes", tag = "Classes and environments",
    params(("environment" = String, Path), SnapshotParameters, Page),
    responses(
        (status = 200, body = [Class]),
        PageErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn environment_classes(
    context: SnapshotContext,
    parameters: Parameters,
    PathParameter(name): PathParameter,
) -> Response {
    let found = context.snapshot.estate.catalogues.iter().find(|(it, _)| it.as_str() == name);
    let classes = found.into_iter().flat_map(|(name, catalogue)| Class::all_of(name, catalogue));
    context.json(parameters.page(classes.collect()))
}

/// Shows a class.
#[utoipa::path(
    get, path = "/v1/environments/{environment}/classes/{class}", operation_id = "environment_class", tag = "Classes and environments",
    params(("environment" = String, Path), ("class" = String, Path), SnapshotParameters),
    responses(
        (status = 200, body = Class),
        NotFound,
        SnapshotErrors,
    ),
)]
pub(super) async fn environment_class(
    context: SnapshotContext,
    uri: OriginalUri,
    PathParameters([environment, class]): PathParameters<2>,
) -> Response {
    let catalogues = &context.snapshot.estate.catalogues;
    let found = catalogues.iter().find(|(it, _)| it.as_str() == environment);
    let mut classes =
        found.into_iter().flat_map(|(name, catalogue)| Class::all_of(name, catalogue));
    let class = classes.find(|it| it.name.as_str() == class);
    context.json(class.ok_or_else(|| ApiError::not_found(&uri)))
}

/// Returns the answer to a write where groups change by commits alone; it names the file of the
/// group to who may write or read it.
pub(super) fn refusal(controller: &Controller, caller: &Caller, id: Option<&str>) -> Response {
    let address = controller.address();
    let whole = || {
        let message = format!("Groups are managed in git: change them by a commit to {address}.");
        ApiError::read_only(message).into_response()
    };
    let Some(id) = id else { return whole() };
    let Ok(group) = id.parse() else {
        // Environments are named, not numbered.
        return if id.contains('-') || !id.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
        {
            ApiError::malformed_uuid(id).into_response()
        } else {
            whole()
        };
    };
    let Ok(snapshot) = controller.snapshot() else { return whole() };
    let Some(origin) = snapshot.origins.get(&group) else { return whole() };
    let hierarchy = &snapshot.estate.hierarchy;
    let is_in_reach = caller.may_read_beside(None)
        || caller.write_grants().iter().any(|it| it.scope.reaches(hierarchy, group));
    if !is_in_reach {
        return whole();
    }
    ApiError::read_only(format!(
        "Groups are managed in git: change this one in the file {} of {address}.",
        path_below(controller.path(), &origin.file),
    ))
    .into_response()
}
