//! All routes on one page.

use std::sync::Arc;

use axum::Router;
use axum::extract::OriginalUri;
use axum::http::Method;
use axum::response::Response;
use axum::routing::{get, post};

use super::error::ApiError;
use super::{classify, controller, groups, maintenance, service_status, validate};
use crate::reconcile::Controller;
use crate::telemetry::Metrics;

/// Everything that a handler may reach.
#[derive(Clone, Debug)]
pub struct App {
    /// Follows the branch and hands out snapshots.
    pub controller: Arc<Controller>,
    /// Counts what is answered.
    pub metrics: Arc<Metrics>,
}

/// Returns the routes of the daemon.
pub fn router(app: App) -> Router {
    Router::new()
        .merge(classifier())
        .nest("/classifier-api", classifier())
        // Puppet Server and Hiera
        .route("/enc/{certname}", get(classify::enc_without_facts).post(classify::enc_with_facts))
        .route("/hiera/{certname}", get(classify::hiera))
        // Puppet's status API and probes
        .route("/status/v1/services", get(service_status::services))
        .route("/status/v1/services/{service}", get(service_status::one_service))
        .route("/status/v1/simple", get(service_status::simple))
        .route("/status/v1/simple/{service}", get(service_status::simple_service))
        .route("/livez", get(service_status::livez))
        .route("/readyz", get(service_status::readyz))
        .route("/metrics", get(service_status::metrics))
        // the controller
        .route("/controller/status", get(controller::status))
        .route("/controller/commits", get(controller::commits))
        .route("/controller/commits/{*revision}", get(controller::commit))
        .route("/controller/reconcile", post(controller::reconcile))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(axum::middleware::map_response(complete_error))
        .with_state(app)
}

/// The classifier API of Puppet Enterprise.
fn classifier() -> Router<App> {
    Router::new()
        .route("/v1/classified/nodes/{name}", get(classify::v1_without_facts).post(classify::v1))
        .route("/v2/classified/nodes/{name}", get(classify::v2_without_facts).post(classify::v2))
        .route("/v1/classified/nodes/{name}/explanation", post(classify::explanation))
        .route("/v1/groups", get(groups::list).post(maintenance::refuse))
        .route(
            "/v1/groups/{id}",
            get(groups::one)
                .put(maintenance::refuse_for)
                .post(maintenance::refuse_for)
                .delete(maintenance::refuse_for),
        )
        .route("/v1/groups/{id}/pin", post(maintenance::refuse_for))
        .route("/v1/groups/{id}/unpin", post(maintenance::refuse_for))
        .route("/v1/groups/{id}/rules", get(groups::rules))
        .route("/v1/group-children/{id}", get(groups::children))
        .route("/v1/commands/unpin-from-all", post(maintenance::refuse))
        .route("/v1/import-hierarchy", post(maintenance::refuse))
        .route("/v1/rules/translate", post(groups::translate))
        .route("/v1/validate/group", post(validate::group))
        .route("/v1/classes", get(maintenance::classes))
        .route("/v1/environments", get(maintenance::environments))
        .route(
            "/v1/environments/{environment}",
            get(maintenance::environment).put(maintenance::refuse),
        )
        .route("/v1/environments/{environment}/classes", get(maintenance::environment_classes))
        .route(
            "/v1/environments/{environment}/classes/{class}",
            get(maintenance::environment_class),
        )
        .route("/v1/last-class-update", get(maintenance::last_class_update))
        .route("/v1/update-classes", post(maintenance::update_classes))
        .route("/v1/nodes", get(maintenance::nodes))
        .route("/v1/nodes/{name}", get(maintenance::one_node))
}

async fn not_found(OriginalUri(uri): OriginalUri) -> ApiError {
    ApiError::not_found(uri.path())
}

async fn method_not_allowed(method: Method, OriginalUri(uri): OriginalUri) -> ApiError {
    ApiError::method_not_allowed(method.as_str(), uri.path())
}

/// Gives an error that the framework made, such as for a path that is not UTF-8, the shape of all
/// errors.
async fn complete_error(response: Response) -> Response {
    use axum::response::IntoResponse as _;

    let is_text = response
        .headers()
        .get(axum::http::header::CONTENT_TYPE)
        .is_some_and(|it| it.as_bytes().starts_with(b"text/plain"));
    if response.status() == axum::http::StatusCode::BAD_REQUEST && is_text {
        let message = "The path of your request cannot be read.";
        let status = response.status();
        return ApiError::new(status, "malformed-request", message, serde_json::Value::Null)
            .into_response();
    }
    response
}
