//! All routes on one page.

use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, OriginalUri, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};

use super::access::{Access, Caller};
use super::enc_cache::Replies;
use super::error::ApiError;
use super::known::FactsPolicy;
use super::server::Peer;
use super::update_classes::PuppetServer;
use super::webhook::Webhooks;
use super::{
    check_ins, classify, controller, diff, enc, environments, groups, service_status,
    update_classes, validate, webhook, writes,
};
use crate::reconcile::{Controller, Writer};
use crate::store::CheckIns;
use crate::telemetry::Metrics;

/// Everything that a handler may reach.
#[derive(Debug)]
pub struct App {
    /// Follows the branch and hands out snapshots.
    pub controller: Arc<Controller>,
    /// Counts what is answered.
    pub metrics: Arc<Metrics>,
    /// Who may do what.
    pub access: Arc<Access>,
    /// What is configured for webhooks.
    pub webhooks: Arc<Webhooks>,
    /// What nodes last asked.
    pub check_ins: CheckIns,
    /// Makes commits of writes; none where groups change by commits alone.
    pub writer: Option<Arc<Writer>>,
    /// Who knows the classes of environments; none where catalogues change by commits alone.
    pub puppet_server: Option<PuppetServer>,
    /// Where the facts of nodes come from that send none.
    pub facts: FactsPolicy,
    /// What was answered to those who asked by name alone.
    pub replies: Replies,
}

/// Which routes an address has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteSet {
    /// All.
    Whole,
    /// What nodes, people and forges ask: no metrics and no operator actions.
    Public,
    /// Probes, metrics and operator actions.
    Admin,
}

/// Returns the routes of an address.
pub fn router(app: Arc<App>, face: RouteSet) -> Router {
    let probes = Router::new()
        .route("/livez", get(service_status::livez))
        .route("/readyz", get(service_status::readyz))
        .route("/openapi.json", get(service_status::openapi))
        .route("/controller/status", get(controller::status))
        .route("/controller/commits", get(controller::commits))
        .route("/controller/commits/{*revision}", get(controller::commit))
        .route("/controller/diff/{base}/{head}", get(diff::diff));
    let routes = match face {
        RouteSet::Whole => probes.merge(public()).merge(operator()),
        RouteSet::Public => probes.merge(public()),
        RouteSet::Admin => probes.merge(operator()),
    };
    routes
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(axum::middleware::from_fn_with_state((Arc::clone(&app), face), guard))
        .with_state(app)
}

/// What nodes, people and forges ask.
fn public() -> Router<Arc<App>> {
    Router::new()
        .merge(classifier())
        .nest("/classifier-api", classifier())
        // Puppet Server, Hiera, and what Foreman's clients ask
        .route("/enc/{certname}", get(enc::without_facts).post(enc::with_facts))
        .route("/node/{certname}", get(enc::without_facts))
        .route("/api/hosts/facts", post(enc::upload_facts))
        .route("/hiera/{certname}", get(enc::hiera).post(enc::hiera_with_facts))
        // Puppet's status API
        .route("/status/v1/services", get(service_status::services))
        .route("/status/v1/services/{service}", get(service_status::one_service))
        .route("/status/v1/simple", get(service_status::simple))
        .route("/status/v1/simple/{service}", get(service_status::simple_service))
        .route("/webhook/{provider}", post(webhook::receive))
}

/// What operators and their monitoring ask.
fn operator() -> Router<Arc<App>> {
    Router::new()
        .route("/metrics", get(service_status::metrics))
        .route("/controller/reconcile", post(controller::reconcile))
        .route("/controller/pin", post(controller::pin))
        .route("/controller/resume", post(controller::resume))
}

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Finds out who asks, whether they may, and counts what they get.
async fn guard(
    State((app, face)): State<(Arc<App>, RouteSet)>,
    mut request: Request,
    next: Next,
) -> Response {
    #[expect(clippy::disallowed_methods, reason = "requests take time")]
    let began = std::time::Instant::now();
    let id = request_id(request.headers());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|it| it.as_str().to_owned());
    let mut response = match admit(&app, face, &request) {
        Ok(caller) => {
            request.extensions_mut().insert(Arc::new(caller));
            complete_error(next.run(request).await)
        }
        Err(error) => error.into_response(),
    };
    // Where no route matches, the path is anybody's choice: one label for all of them.
    let route = route.unwrap_or_else(|| "none".to_owned());
    let took = began.elapsed();
    tracing::debug!(target: "clade::access", %method, route, status = response.status().as_u16(), ?took, request_id = id.to_str().unwrap_or_default());
    app.metrics.count_request(route, method_label(&method), response.status().as_u16(), took);
    response.headers_mut().insert(REQUEST_ID, id);
    // A link that is followed from here does not pass the URL on, which may have had a token in it.
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Returns a method as a label: what is none of HTTP's is one of them.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

fn admit(app: &App, face: RouteSet, request: &Request) -> Result<Caller, ApiError> {
    let peer = request.extensions().get::<Peer>().cloned().unwrap_or_default();
    if peer.is_spare && !matches!(request.uri().path(), "/livez" | "/readyz") {
        return Err(ApiError::busy());
    }
    if peer.is_local {
        return Ok(Caller::unlimited());
    }
    let caller = app.access.identify(request, peer.certificate.as_ref())?;
    let path = request.uri().path();
    // Who can reach the address for monitoring may scrape it.
    if face == RouteSet::Admin && path == "/metrics" {
        return Ok(caller);
    }
    Access::check(&caller, request.method(), path)?;
    Ok(caller)
}

/// Returns the id of a request: the client's, if it is fit for a log, or a fresh one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let fits = |it: &&HeaderValue| {
        let bytes = it.as_bytes();
        !bytes.is_empty() && bytes.len() <= 128 && bytes.iter().all(u8::is_ascii_graphic)
    };
    headers.get(REQUEST_ID).filter(fits).cloned().unwrap_or_else(|| {
        let fresh = format!("{:032x}", fastrand::u128(..));
        HeaderValue::from_str(&fresh).unwrap_or(HeaderValue::from_static("0"))
    })
}

/// The classifier API of Puppet Enterprise.
fn classifier() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/classified/nodes/{name}", get(classify::v1_without_facts).post(classify::v1))
        .route("/v2/classified/nodes/{name}", get(classify::v2_without_facts).post(classify::v2))
        .route(
            "/v1/classified/nodes/{name}/explanation",
            get(classify::explanation_by_name).post(classify::explanation),
        )
        .route("/v1/groups", get(groups::list).post(writes::create))
        .route(
            "/v1/groups/{id}",
            get(groups::one).put(writes::put).post(writes::edit).delete(writes::delete),
        )
        .route("/v1/groups/{id}/pin", post(writes::pin))
        .route("/v1/groups/{id}/unpin", post(writes::unpin))
        .route("/v1/groups/{id}/rules", get(groups::rules))
        .route("/v1/groups/{id}/nodes", get(check_ins::of_group))
        .route("/v1/group-children/{id}", get(groups::children))
        .route("/v1/commands/unpin-from-all", post(writes::unpin_from_all))
        .route("/v1/import-hierarchy", post(writes::import_hierarchy))
        .route("/v1/rules/translate", post(groups::translate))
        .route("/v1/validate/group", post(validate::group))
        .route("/v1/classes", get(environments::classes))
        .route("/v1/environments", get(environments::environments))
        .route(
            "/v1/environments/{environment}",
            get(environments::environment)
                .put(writes::put_environment)
                .delete(writes::delete_environment),
        )
        .route("/v1/environments/{environment}/classes", get(environments::environment_classes))
        .route(
            "/v1/environments/{environment}/classes/{class}",
            get(environments::environment_class),
        )
        .route("/v1/last-class-update", get(update_classes::last))
        .route("/v1/update-classes", post(update_classes::update))
        .route("/v1/nodes", get(check_ins::list))
        .route("/v1/nodes/{name}", get(check_ins::one))
}

async fn not_found(uri: OriginalUri) -> ApiError {
    ApiError::not_found(&uri)
}

async fn method_not_allowed(method: Method, OriginalUri(uri): OriginalUri) -> ApiError {
    ApiError::method_not_allowed(method.as_str(), uri.path())
}

/// Gives an error that the framework made, such as for a path that is not UTF-8, the shape of all
/// errors.
fn complete_error(response: Response) -> Response {
    let is_text = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|it| it.as_bytes().starts_with(b"text/plain"));
    if response.status() == axum::http::StatusCode::BAD_REQUEST && is_text {
        let message = "The path of your request cannot be read.";
        let status = response.status();
        return ApiError::new(status, "malformed-request", message, serde_json::Value::Null)
            .into_response();
    }
    response
}
