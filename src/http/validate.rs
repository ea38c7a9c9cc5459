//! Validating a group without storing it.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};

use super::answer::{Answering, lookup};
use super::body::read_json;
use super::error::ApiError;
use super::router::App;
use crate::amend::{Operation, read_group};
use crate::hierarchy::group_to_value;
use crate::model::GroupId;

/// Answers with the group, or with the error that the write of it would get.
pub(super) async fn group(
    State(app): State<Arc<App>>,
    answering: Answering,
    body: Body,
) -> Result<Response, ApiError> {
    let body = read_json(body).await?.unwrap_or_default();
    let mut group = read_group(&body)?;
    let operation = if body.get("id").is_none_or(serde_json::Value::is_null) {
        // The id of the file format follows the name; that of a new group here does not.
        group.id = GroupId::from_random(fastrand::u128(..));
        Operation::Create { id: group.id, body }
    } else {
        Operation::Put { id: group.id, body }
    };
    let (controller, snapshot) = (Arc::clone(&app.controller), Arc::clone(&answering.snapshot));
    let permit = lookup().await?;
    let check = move || {
        let _permit = permit;
        controller.check_write(&snapshot, &operation)
    };
    let checked = tokio::task::spawn_blocking(check).await;
    match checked.map_err(|_| ApiError::internal("The group could not be checked."))? {
        Ok(()) => Ok(answering.respond(Json(group_to_value(&group)))),
        Err(error) => Ok(answering.respond(ApiError::from(error).into_response())),
    }
}
