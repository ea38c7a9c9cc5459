//! Puppet's status API, and the probes of an orchestrator.

use std::sync::Arc;

use axum::Json;
use axum::extract::{OriginalUri, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Map, Value, json};

use super::answer::Parameters;
use super::error::ApiError;
use crate::reconcile::{Controller, Freshness, LookupError, OnStale};
use crate::telemetry::Metrics;

/// The services that clients of Puppet Enterprise wait for; the last two are always there, since
/// this daemon does their part itself.
const SERVICES: &[&str] = &["classifier-service", "rbac-service", "activity-service"];

fn service(controller: &Controller, name: &str, level: &str) -> Value {
    let running = name != "classifier-service" || controller.snapshot().is_ok();
    json!({
        "service_name": name,
        "service_version": env!("CARGO_PKG_VERSION"),
        "service_status_version": 1,
        "detail_level": level,
        "state": if running { "running" } else { "error" },
        "status": {},
        "active_alerts": [],
    })
}

fn level(parameters: &Parameters) -> Result<&str, ApiError> {
    match parameters.get("level").unwrap_or("info") {
        level @ ("critical" | "info" | "debug") => Ok(level),
        other => {
            let message = "The parameter `level` must be critical, info or debug.";
            Err(ApiError::new(StatusCode::BAD_REQUEST, "schema-violation", message, other))
        }
    }
}

fn code(controller: &Controller) -> StatusCode {
    match controller.snapshot() {
        Ok(_) => StatusCode::OK,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

pub(super) async fn services(
    State(controller): State<Arc<Controller>>,
    parameters: Parameters,
) -> Result<Response, ApiError> {
    let level = level(&parameters)?;
    let all: Map<String, Value> = SERVICES
        .iter()
        .map(|name| ((*name).to_owned(), service(&controller, name, level)))
        .collect();
    Ok((code(&controller), Json(all)).into_response())
}

pub(super) async fn one_service(
    State(controller): State<Arc<Controller>>,
    parameters: Parameters,
    uri: OriginalUri,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    let level = level(&parameters)?;
    match SERVICES.iter().find(|it| **it == name) {
        Some(name) => {
            Ok((code(&controller), Json(service(&controller, name, level))).into_response())
        }
        None => Err(ApiError::not_found(&uri)),
    }
}

pub(super) async fn simple(
    State(controller): State<Arc<Controller>>,
) -> (StatusCode, &'static str) {
    let code = code(&controller);
    (code, if code == StatusCode::OK { "running" } else { "error" })
}

pub(super) async fn simple_service(
    State(controller): State<Arc<Controller>>,
    uri: OriginalUri,
    Path(name): Path<String>,
) -> Response {
    if SERVICES.contains(&name.as_str()) {
        simple(State(controller)).await.into_response()
    } else {
        ApiError::not_found(&uri).into_response()
    }
}

/// Liveness probe.
pub(super) async fn livez() -> &'static str {
    "ok\n"
}

/// The metrics, in the text format of OpenMetrics.
pub(super) async fn metrics(
    State(metrics): State<Arc<Metrics>>,
    State(controller): State<Arc<Controller>>,
) -> Response {
    let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, format)], metrics.render(&controller.scrape())).into_response()
}

/// Every route, for programs; a test compares it with the router.
pub(super) async fn openapi() -> ([(header::HeaderName, &'static str); 1], &'static str) {
    ([(header::CONTENT_TYPE, "application/json")], include_str!("openapi.json"))
}

/// A commit answers, and policy does not mind its age.
pub(super) async fn readyz(
    State(controller): State<Arc<Controller>>,
) -> Result<&'static str, ApiError> {
    controller.snapshot()?;
    match controller.freshness() {
        Freshness::Stale(age, OnStale::Unready | OnStale::Refuse) => {
            Err(LookupError::Stale(age).into())
        }
        Freshness::Stale(_, OnStale::Serve) | Freshness::Fresh => Ok("ok\n"),
    }
}
