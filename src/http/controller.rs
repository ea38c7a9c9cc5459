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
use super::router::App;
use crate::diagnostic;
use crate::reconcile::{Controller, Known, Outcome, Status, Trigger};

pub(super) async fn status(State(app): State<Arc<App>>) -> Json<Status> {
    Json(app.controller.status())
}

/// Has the branch looked at now.
pub(super) async fn reconcile(State(app): State<Arc<App>>) -> (StatusCode, Json<Value>) {
    app.controller.want(Trigger::Manual);
    (StatusCode::ACCEPTED, Json(json!({"requested": true})))
}

/// Keeps a commit answering.
pub(super) async fn pin(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Arc<Caller>>,
    body: Body,
) -> Result<Json<Value>, ApiError> {
    let body = read_json(body).await?.unwrap_or_default();
    let Some(revision) = body.get("commit").and_then(Value::as_str).map(str::to_owned) else {
        let error = Value::from("({:commit missing-required-key})");
        return Err(ApiError::schema_violation(&body, "Pin", &error));
    };
    let commit =
        blocking_at_once(&app, move |it| it.pin(&revision, caller.actor(Role::Operate))).await?;
    Ok(Json(json!({"pinned": commit})))
}

/// Follows the branch again.
pub(super) async fn resume(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Arc<Caller>>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    blocking_at_once(&app, move |it| Ok(it.resume(caller.actor(Role::Operate))?)).await?;
    Ok((StatusCode::ACCEPTED, Json(json!({"pinned": null}))))
}

pub(super) async fn commits(
    State(app): State<Arc<App>>,
    parameters: Parameters,
) -> Result<Json<Value>, ApiError> {
    let commits = blocking(&app, Controller::commits).await?;
    Ok(Json(parameters.page(commits.iter().map(to_value).collect())?.into()))
}

pub(super) async fn commit(
    State(app): State<Arc<App>>,
    Path(revision): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let known = blocking(&app, move |controller| controller.known(&revision)).await?;
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
