//! The controller's own routes.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;

use super::access::{Caller, Role};
use super::blocking::REPOSITORY;
use super::body::read_json;
use super::error::ApiError;
use super::openapi::errors::{
    BodyErrors, CommitErrors, JournalErrors, LookupErrors, PageErrors, PathErrors,
    ValidCommitErrors,
};
use super::openapi::parameters::Page;
use super::path_parameter::PathParameter;
use super::query::Parameters;
use super::types::{Commit, OperatorRequest, PinRequest, Pinned, Replica, Requested, Status};
use super::webhook::Webhooks;
use crate::overview::Overview;
use crate::reconcile::{Attribution, Controller, LookupError};
use crate::store::CheckIns;

/// The state of the controller.
#[utoipa::path(
    get, path = "/controller/status", operation_id = "status", tag = "Controller",
    responses(
        (status = 200, body = Status),
    ),
)]
pub(super) async fn status(
    State(controller): State<Arc<Controller>>,
    State(overview): State<Arc<Overview>>,
    State(check_ins): State<CheckIns>,
    State(webhooks): State<Arc<Webhooks>>,
) -> Json<Status> {
    Json(Status {
        replicas: overview.replicas(&controller).into_iter().map(Replica::from).collect(),
        store: Some(overview.store(&check_ins).into()),
        webhooks: webhooks.deliveries(),
        ..controller.status().into()
    })
}

/// Has the branch fetched now.
#[utoipa::path(
    post, path = "/controller/reconcile", operation_id = "reconcile", tag = "Controller",
    request_body = OperatorRequest,
    responses(
        (status = 202, body = Requested),
        BodyErrors,
    ),
)]
pub(super) async fn reconcile(
    State(controller): State<Arc<Controller>>,
    caller: Caller,
    body: Body,
) -> Result<(StatusCode, Json<Requested>), ApiError> {
    let OperatorRequest { reason } = read_request(body).await?;
    let reconcile = move || {
        controller.reconcile(attribution(&caller, reason));
        Ok::<_, ApiError>(())
    };
    REPOSITORY.run_at_once(reconcile).await?;
    Ok((StatusCode::ACCEPTED, Json(Requested { requested: true })))
}

/// Reads what an operator asks for; an empty body gives no reason.
async fn read_request(body: Body) -> Result<OperatorRequest, ApiError> {
    match read_json(body).await? {
        Some(body) => Ok(OperatorRequest::read(&body)?),
        None => Ok(OperatorRequest::default()),
    }
}

/// Returns who asks for something, and why.
fn attribution(caller: &Caller, reason: Option<String>) -> Attribution {
    Attribution { actor: caller.actor(Role::Operate), reason }
}

/// Keeps a commit answering, on this replica.
#[utoipa::path(
    post, path = "/controller/pin", operation_id = "pin", tag = "Controller",
    request_body = PinRequest,
    responses(
        (status = 200, body = Pinned),
        BodyErrors,
        ValidCommitErrors,
        JournalErrors,
    ),
)]
pub(super) async fn pin(
    State(controller): State<Arc<Controller>>,
    caller: Caller,
    body: Body,
) -> Result<Json<Pinned>, ApiError> {
    let body = read_json(body).await?.unwrap_or_default();
    let PinRequest { commit, reason } = PinRequest::read(body)?;
    let reads = caller.may_read_beside(Some(Role::Operate));
    let pin = move || {
        let done = controller.pin(&commit, attribution(&caller, reason)).map_err(ApiError::from);
        done.map_err(|error| if reads { error } else { error.without_groups() })
    };
    let commit = REPOSITORY.run_at_once(pin).await?;
    Ok(Json(Pinned { pinned: Some(commit) }))
}

/// Follows the branch again.
#[utoipa::path(
    post, path = "/controller/resume", operation_id = "resume", tag = "Controller",
    request_body = OperatorRequest,
    responses(
        (status = 202, body = Pinned),
        BodyErrors,
        JournalErrors,
    ),
)]
pub(super) async fn resume(
    State(controller): State<Arc<Controller>>,
    caller: Caller,
    body: Body,
) -> Result<(StatusCode, Json<Pinned>), ApiError> {
    let OperatorRequest { reason } = read_request(body).await?;
    let resume = move || controller.resume(attribution(&caller, reason)).map_err(LookupError::from);
    REPOSITORY.run_at_once(resume).await?;
    Ok((StatusCode::ACCEPTED, Json(Pinned { pinned: None })))
}

/// The commits that this daemon has built since its start and keeps, newest first, without those of writes that were not pushed; of others ask by their ids.
#[utoipa::path(
    get, path = "/controller/commits", operation_id = "list_commits", tag = "Controller",
    params(Page),
    responses(
        (status = 200, body = [Commit]),
        PageErrors,
        LookupErrors,
    ),
)]
pub(super) async fn commits(
    State(controller): State<Arc<Controller>>,
    parameters: Parameters,
) -> Result<Json<Vec<Commit>>, ApiError> {
    let commits = REPOSITORY.run(move || controller.commits()).await?;
    Ok(Json(parameters.page(commits.iter().map(Commit::from).collect())?))
}

/// What became of a commit.
#[utoipa::path(
    get, path = "/controller/commits/{revision}", operation_id = "commit", tag = "Controller",
    params(("revision" = String, Path)),
    responses(
        (status = 200, body = Commit),
        PathErrors,
        CommitErrors,
    ),
)]
pub(super) async fn commit(
    State(controller): State<Arc<Controller>>,
    PathParameter(revision): PathParameter,
) -> Result<Json<Commit>, ApiError> {
    let details = REPOSITORY.run(move || controller.commit_details(&revision)).await?;
    Ok(Json(Commit::from(&details)))
}
