//! Validating a group without storing it.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};

use super::blocking::{Panicked, REPOSITORY, run_blocking};
use super::body::{read, to_groups};
use super::compute::TOOLS;
use super::error::ApiError;
use super::openapi::errors::{BodyErrors, GroupErrors, SnapshotErrors};
use super::openapi::parameters::SnapshotParameters;
use super::snapshot_context::SnapshotContext;
use super::types;
use crate::changeset::{Operation, read_group};
use crate::model::{Group, GroupId, NODE_VALUES};
use crate::reconcile::Controller;

/// Checks a group without changing anything.
#[utoipa::path(
    post, path = "/v1/validate/group", operation_id = "validate_group", tag = "Groups",
    params(SnapshotParameters),
    request_body = Object,
    responses(
        (status = 200, body = types::Group),
        BodyErrors,
        GroupErrors,
        SnapshotErrors,
    ),
)]
pub(super) async fn group(
    State(controller): State<Arc<Controller>>,
    context: SnapshotContext,
    body: Body,
) -> Result<Response, ApiError> {
    let bytes = read(body).await?;
    let weight = bytes.as_ref().map_or(0, Bytes::len);
    let (group, operation) =
        TOOLS.run_apart(weight, move || operation_of(bytes.as_deref())).await??;
    let permit = REPOSITORY.admit().await?;
    let check = move || {
        let _permit = permit;
        match controller.check_write(&context.snapshot, &operation) {
            Ok(()) => context.respond(Json(types::Group::from(&group))),
            Err(error) => context.respond(ApiError::from(error).into_response()),
        }
    };
    let checked = run_blocking(check).await;
    checked.map_err(|Panicked| ApiError::internal("The group could not be checked."))
}

/// Reads the group of a body, and the write that would store it.
fn operation_of(bytes: Option<&[u8]>) -> Result<(Group, Operation), ApiError> {
    let body = bytes.map(|it| to_groups(it, NODE_VALUES, "Group")).transpose()?.unwrap_or_default();
    let mut group = read_group(&body)?;
    let operation = if body.get("id").is_none_or(serde_json::Value::is_null) {
        // The id of the file format follows the name; that of a new group here does not.
        group.id = GroupId::from_random(fastrand::u128(..));
        Operation::Create { id: group.id, body }
    } else {
        Operation::Put { id: group.id, body }
    };
    Ok((group, operation))
}
