//! The controller's own routes.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::answer::Parameters;
use super::error::ApiError;
use super::router::App;
use crate::diagnostic;
use crate::git::CommitInfo;
use crate::reconcile::{Controller, LookupError, Outcome, Status};

pub(super) async fn status(State(app): State<App>) -> Json<Status> {
    Json(app.controller.status())
}

/// Has the branch looked at now.
pub(super) async fn reconcile(State(app): State<App>) -> (StatusCode, Json<Value>) {
    app.controller.poke();
    (StatusCode::ACCEPTED, Json(json!({"requested": true})))
}

pub(super) async fn commits(
    State(app): State<App>,
    parameters: Parameters,
) -> Result<Json<Value>, ApiError> {
    let commits = blocking(&app, Controller::commits).await?;
    let all = commits.iter().map(|(info, outcome)| to_value(info, outcome)).collect();
    Ok(Json(parameters.page(all)?.into()))
}

pub(super) async fn commit(
    State(app): State<App>,
    Path(revision): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let (info, outcome) =
        blocking(&app, move |controller| controller.outcome_of(&revision)).await?;
    Ok(Json(to_value(&info, &outcome)))
}

/// Runs what reads the repository where it holds up nobody.
async fn blocking<T: Send + 'static>(
    app: &App,
    work: impl FnOnce(&Controller) -> Result<T, LookupError> + Send + 'static,
) -> Result<T, ApiError> {
    let controller = Arc::clone(&app.controller);
    let done = tokio::task::spawn_blocking(move || work(&controller)).await;
    Ok(done.map_err(|_| ApiError::internal("The repository could not be read."))??)
}

fn to_value(info: &CommitInfo, outcome: &Outcome) -> Value {
    let (valid, groups, diagnostics) = match outcome {
        Outcome::Valid(snapshot) => {
            (true, Some(snapshot.estate.hierarchy.len()), &snapshot.warnings)
        }
        Outcome::Rejected(rejected) => (false, None, &rejected.diagnostics),
    };
    json!({
        "commit": info.id,
        "author": info.author,
        "time": info.time,
        "subject": info.subject,
        "valid": valid,
        "groups": groups,
        "diagnostics": diagnostics.iter().map(diagnostic::to_value).collect::<Vec<_>>(),
    })
}
