//! How counts went over time.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::names_no_commit::NamesNoCommit;
use super::openapi::errors::SnapshotParameterErrors;
use super::types::Trends;
use crate::overview::Overview;

/// Shows how counts went over time, as far as this daemon saw it.
#[utoipa::path(
    get, path = "/controller/trends", operation_id = "trends", tag = "Controller",
    responses(
        (status = 200, body = Trends),
        SnapshotParameterErrors,
    ),
)]
pub(super) async fn trends(
    _: NamesNoCommit,
    State(overview): State<Arc<Overview>>,
) -> Json<Trends> {
    Json(overview.as_ref().into())
}
