//! Puppet's status API, and the probes of an orchestrator.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use indexmap::IndexMap;
use serde_json::json;

use super::error::ApiError;
use super::openapi::errors::{NotFound, PathErrors, ReadyErrors, WordErrors};
use super::openapi::parameters::Level;
use super::original_uri::OriginalUri;
use super::path_parameter::PathParameter;
use super::query::Parameters;
use super::types::{DetailLevel, ErrorKind, Service, ServiceState};
use crate::reconcile::{Controller, Freshness, LookupError, OnStale};
use crate::telemetry::Metrics;

/// The services that clients of Puppet Enterprise wait for; the last two are always there, since
/// this daemon does their part itself.
const SERVICES: &[&str] = &["classifier-service", "rbac-service", "activity-service"];

fn service(controller: &Controller, name: &str, detail_level: DetailLevel) -> Service {
    let running = name != "classifier-service" || controller.snapshot().is_ok();
    Service {
        service_name: name.to_owned(),
        service_version: env!("CARGO_PKG_VERSION").to_owned(),
        service_status_version: 1,
        detail_level,
        state: if running { ServiceState::Running } else { ServiceState::Error },
        status: BTreeMap::new(),
        active_alerts: Vec::new(),
    }
}

fn level(parameters: &Parameters) -> Result<DetailLevel, ApiError> {
    let Some(word) = parameters.get("level") else { return Ok(DetailLevel::Info) };
    DetailLevel::of(word).ok_or_else(|| {
        let message = "The parameter `level` must be critical, info or debug.";
        let details = json!({
            "submitted": {"level": word},
            "schema": {"type": "string", "enum": ["critical", "info", "debug"]},
            "error": "([:level (not (#{critical info debug} level))])",
        });
        ApiError::new(ErrorKind::SchemaViolation, message, details)
    })
}

fn code(controller: &Controller) -> StatusCode {
    match controller.snapshot() {
        Ok(_) => StatusCode::OK,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// The state of the services, as Puppet has it.
#[utoipa::path(
    get, path = "/status/v1/services", operation_id = "services", tag = "Status",
    params(Level),
    responses(
        (status = 200, body = BTreeMap<String, Service>),
        (status = 503, body = BTreeMap<String, Service>, description = "No commit answers"),
        WordErrors,
    ),
)]
pub(super) async fn services(
    State(controller): State<Arc<Controller>>,
    parameters: Parameters,
) -> Result<Response, ApiError> {
    let level = level(&parameters)?;
    let all: IndexMap<&str, Service> =
        SERVICES.iter().map(|name| (*name, service(&controller, name, level))).collect();
    Ok((code(&controller), Json(all)).into_response())
}

/// The state of one service.
#[utoipa::path(
    get, path = "/status/v1/services/{service}", operation_id = "service", tag = "Status",
    params(("service" = String, Path), Level),
    responses(
        (status = 200, body = Service),
        (status = 503, body = Service, description = "No commit answers"),
        WordErrors,
        NotFound,
    ),
)]
pub(super) async fn one_service(
    State(controller): State<Arc<Controller>>,
    parameters: Parameters,
    uri: OriginalUri,
    PathParameter(name): PathParameter,
) -> Result<Response, ApiError> {
    let level = level(&parameters)?;
    match SERVICES.iter().find(|it| **it == name) {
        Some(name) => {
            Ok((code(&controller), Json(service(&controller, name, level))).into_response())
        }
        None => Err(ApiError::not_found(&uri)),
    }
}

/// `running`, or 503 and `error`.
#[utoipa::path(
    get, path = "/status/v1/simple", operation_id = "simple", tag = "Status",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 503, body = String, content_type = "text/plain", description = "No commit answers"),
    ),
)]
pub(super) async fn simple(
    State(controller): State<Arc<Controller>>,
) -> (StatusCode, &'static str) {
    let code = code(&controller);
    (code, if code == StatusCode::OK { "running" } else { "error" })
}

/// The same, for one service.
#[utoipa::path(
    get, path = "/status/v1/simple/{service}", operation_id = "simple_service", tag = "Status",
    params(("service" = String, Path)),
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 503, body = String, content_type = "text/plain", description = "No commit answers"),
        PathErrors,
        NotFound,
    ),
)]
pub(super) async fn simple_service(
    State(controller): State<Arc<Controller>>,
    uri: OriginalUri,
    PathParameter(name): PathParameter,
) -> Response {
    if SERVICES.contains(&name.as_str()) {
        simple(State(controller)).await.into_response()
    } else {
        ApiError::not_found(&uri).into_response()
    }
}

/// Liveness probe: the process answers.
#[utoipa::path(
    get, path = "/livez", operation_id = "livez", tag = "Status",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
    ),
)]
pub(super) async fn livez() -> &'static str {
    "ok\n"
}

/// The metrics, in the text format of OpenMetrics.
///
/// On `--admin-listen` no role is needed, and the other address has no such route.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "Status",
    responses(
        (status = 200, body = String, content_type = "application/openmetrics-text"),
    ),
)]
pub(super) async fn metrics(
    State(metrics): State<Arc<Metrics>>,
    State(controller): State<Arc<Controller>>,
) -> Response {
    let format = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, format)], metrics.render(&controller.scrape())).into_response()
}

/// This document.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "openapi", tag = "Status",
    responses((status = 200, body = Object))
)]
pub(super) fn openapi(
    document: &'static str,
) -> ([(header::HeaderName, &'static str); 1], &'static str) {
    ([(header::CONTENT_TYPE, "application/json")], document)
}

/// Readiness probe: a commit answers, and is not older than it may be.
#[utoipa::path(
    get, path = "/readyz", operation_id = "readyz", tag = "Status",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        ReadyErrors,
    ),
)]
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
