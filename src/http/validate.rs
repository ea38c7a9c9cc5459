//! Validating a group without storing it.

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};

use super::answer::Answering;
use super::body::read_json;
use super::error::ApiError;
use crate::amend::{check_whole, read_group};
use crate::hierarchy::group_to_value;
use crate::model::GroupId;

pub(super) async fn group(answering: Answering, body: Body) -> Result<Response, ApiError> {
    let body = read_json(body).await?.unwrap_or_default();
    let mut group = read_group(&body)?;
    if body.get("id").is_none_or(serde_json::Value::is_null) {
        // The id of the file format follows the name; that of a new group here does not.
        group.id = GroupId::from_random(fastrand::u128(..));
    }
    match check_whole(&group, &answering.snapshot.estate) {
        Ok(()) => Ok(answering.respond(Json(group_to_value(&group)))),
        Err(refusal) => Ok(answering.respond(ApiError::from(refusal).into_response())),
    }
}
