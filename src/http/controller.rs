//! The controller's own routes.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde_json::{Value, json};

use super::access::{Caller, Role};
use super::answer::{Parameters, blocking, blocking_at_once};
use super::body::read_json;
use super::error::ApiError;
use crate::diagnostic;
use crate::reconcile::{Controller, Known, Outcome, Status, Trigger};

pub(super) async fn status(State(controller): State<Arc<Controller>>) -> Json<Status> {
    Json(controller.status())
}

/// Fetches the branch now.
pub(super) async fn reconcile(
    State(controller): State<Arc<Controller>>,
) -> (StatusCode, Json<Value>) {
    controller.want(Trigger::Manual);
    (StatusCode::ACCEPTED, Json(json!({"requested": true})))
}

/// Keeps a commit answering.
pub(super) async fn pin(
    State(controller): State<Arc<Controller>>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let body = read_json(body).await?.unwrap_or_default();
    let Some(revision) = body.get("commit").and_then(Value::as_str).map(str::to_owned) else {
        let error = Value::from("({:commit missing-required-key})");
        return Err(ApiError::schema_violation(&body, "Pin", &error));
    };
    let pin = move |it: &Controller| it.pin(&revision, caller.actor(Role::Operate));
    let commit = blocking_at_once(&controller, pin).await?;
    Ok(Json(json!({"pinned": commit})))
}

/// Follows the branch again.
pub(super) async fn resume(
    State(controller): State<Arc<Controller>>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    blocking_at_once(&controller, move |it| Ok(it.resume(caller.actor(Role::Operate))?)).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({"pinned": null}))))
}

pub(super) async fn commits(
    State(controller): State<Arc<Controller>>,
    parameters: Parameters,
) -> Result<Json<Value>, ApiError> {
    let commits = blocking(&controller, Controller::commits).await?;
    Ok(Json(parameters.page(commits.iter().map(to_value).collect())?.into()))
}

pub(super) async fn commit(
    State(controller): State<Arc<Controller>>,
    Path(revision): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let known = blocking(&controller, move |controller| controller.known(&revision)).await?;
    Ok(Json(to_value(&known)))
}

fn to_value(known: &Known) -> Value {
    let Known { info, outcome, fate } = known;
    let (valid, groups, diagnostics) = match outcome {
        Outcome::Valid(snapshot) => {
            (true, Some(snapshot.estate.hierarchy.len()), &snapshot.warnings)
        }
        Outcome::Rejected(rejected) => (false, None, &rejected.diagnostics),
    };
    let mut value = json!({
        "commit": info.id,
        "author": info.author,
        "time": info.time,
        "subject": info.subject,
        "valid": valid,
        "groups": groups,
        "diagnostics": diagnostics.iter().map(diagnostic::to_value).collect::<Vec<_>>(),
        "message": fate.in_words(),
    });
    if let (Value::Object(all), Ok(Value::Object(fate))) = (&mut value, serde_json::to_value(fate))
    {
        all.extend(fate);
    }
    value
}
