//! How counts went over time.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::types::Trends;
use crate::overview::Overview;

/// Shows how counts went over time, as far as this daemon saw it.
#[utoipa::path(
    get, path = "/controller/trends", operation_id = "trends", tag = "Controller",
    responses(
        (status = 200, body = Trends),
    ),
)]
pub(super) async fn trends(State(overview): State<Arc<Overview>>) -> Json<Trends> {
    Json(overview.as_ref().into())
}
