//! Classes, environments, check-ins, and the writes that a read-only daemon refuses.

use axum::extract::{OriginalUri, Path};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::answer::{Parameters, SnapshotContext};
use super::error::ApiError;
use crate::hierarchy::Catalogue;
use crate::model::EnvironmentName;
use crate::reconcile::Controller;

/// Writes the classes of an environment's catalogue.
fn classes_of(environment: &EnvironmentName, catalogue: &Catalogue) -> Vec<Value> {
    catalogue
        .classes
        .iter()
        .map(|(name, parameters)| {
            json!({"name": name, "environment": environment, "parameters": parameters})
        })
        .collect()
}

pub(super) async fn classes(context: SnapshotContext, parameters: Parameters) -> Response {
    let catalogues = &context.snapshot.estate.catalogues;
    let all = catalogues.iter().flat_map(|(name, catalogue)| classes_of(name, catalogue)).collect();
    context.json(parameters.page(all).map(Value::from))
}

pub(super) fn environment_to_value(name: &EnvironmentName) -> Value {
    // A catalogue is a file of the commit that answers, so it is as fresh as everything else.
    json!({"name": name, "sync_succeeded": true})
}

pub(super) async fn environments(context: SnapshotContext, parameters: Parameters) -> Response {
    let known = context.snapshot.estate.environment_names();
    let all = known.into_iter().map(environment_to_value).collect();
    context.json(parameters.page(all).map(Value::from))
}

pub(super) async fn environment(
    context: SnapshotContext,
    uri: OriginalUri,
    Path(name): Path<String>,
) -> Response {
    let known = context.snapshot.estate.environment_names();
    let found = known.into_iter().find(|it| it.as_str() == name).map(environment_to_value);
    context.json(found.ok_or_else(|| ApiError::not_found(&uri)))
}

pub(super) async fn environment_classes(
    context: SnapshotContext,
    parameters: Parameters,
    Path(name): Path<String>,
) -> Response {
    let found = context.snapshot.estate.catalogues.iter().find(|(it, _)| it.as_str() == name);
    let classes = found.map(|(name, catalogue)| classes_of(name, catalogue)).unwrap_or_default();
    context.json(parameters.page(classes).map(Value::from))
}

pub(super) async fn environment_class(
    context: SnapshotContext,
    uri: OriginalUri,
    Path((environment, class)): Path<(String, String)>,
) -> Response {
    let catalogues = &context.snapshot.estate.catalogues;
    let found = catalogues.iter().find(|(it, _)| it.as_str() == environment);
    let classes = found.map(|(name, catalogue)| classes_of(name, catalogue)).unwrap_or_default();
    let class = classes.into_iter().find(|it| it["name"] == class.as_str());
    context.json(class.ok_or_else(|| ApiError::not_found(&uri)))
}

/// Returns the answer to a write where groups change by commits alone; it names the file of the
/// group.
pub(super) fn refusal(controller: &Controller, id: Option<&str>) -> Response {
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
    let directory = match controller.path().trim_matches('/') {
        "" | "." => String::new(),
        path => format!("{path}/"),
    };
    ApiError::read_only(format!(
        "Groups are managed in git: change this one in the file {directory}{} of {address}.",
        origin.file,
    ))
    .into_response()
}
