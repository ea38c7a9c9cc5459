//! What happens to every request and response: the request id, the access log, metrics, and the shape of
//! errors that the framework makes.
//!
//! `tower-http` passes request ids on and sets headers. Its other layers do not fit: the access log and the
//! metrics of a request share its route and its duration; a body limit differs by route, answers in the
//! shape of all errors and counts the memory of the parsed body; and compression would hide the length of
//! responses, by which connections are limited.

use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{self, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use tower::ServiceBuilder;
use tower_http::request_id::{
    MakeRequestId, PropagateRequestIdLayer, RequestId, SetRequestIdLayer,
};
use tower_http::set_header::SetResponseHeaderLayer;

use super::error::ApiError;
use super::types::ErrorKind;
use crate::telemetry::Metrics;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Logs and counts every request of a router.
pub(super) fn observed<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    metrics: Arc<Metrics>,
) -> Router<S> {
    // A link that is followed from a page here must not pass the URL on, which may have had a token in it.
    let no_referrer = HeaderValue::from_static("no-referrer");
    router.layer(
        ServiceBuilder::new()
            .layer(SetResponseHeaderLayer::overriding(header::REFERRER_POLICY, no_referrer))
            .map_request(remove_invalid_id)
            .layer(SetRequestIdLayer::new(REQUEST_ID, RandomId))
            .layer(PropagateRequestIdLayer::new(REQUEST_ID))
            .layer(from_fn_with_state(metrics, observe)),
    )
}

async fn observe(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
    #[expect(clippy::disallowed_methods, reason = "requests take time")]
    let began = std::time::Instant::now();
    let id = request.extensions().get::<RequestId>().cloned();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|it| it.as_str().to_owned());
    let response = as_api_error(next.run(request).await);
    // Without a route, the path is the client's choice: one label for all of them.
    let route = route.unwrap_or_else(|| "none".to_owned());
    let (status, took) = (response.status().as_u16(), began.elapsed());
    let request_id = id.as_ref().and_then(|it| it.header_value().to_str().ok()).unwrap_or_default();
    tracing::debug!(target: "clade::access", %method, route, status, ?took, request_id);
    metrics.count_request(route, method_label(&method), status, took);
    response
}

/// Removes an id of the client that is not fit for a log.
fn remove_invalid_id(mut request: Request) -> Request {
    let fits = |it: &HeaderValue| {
        let bytes = it.as_bytes();
        !bytes.is_empty() && bytes.len() <= 128 && bytes.iter().all(u8::is_ascii_graphic)
    };
    if !request.headers().get(REQUEST_ID).is_some_and(fits) {
        request.headers_mut().remove(REQUEST_ID);
    }
    request
}

/// Makes the id of a request that has none.
#[derive(Clone, Copy, Debug)]
struct RandomId;

impl MakeRequestId for RandomId {
    fn make_request_id<B>(&mut self, _: &http::Request<B>) -> Option<RequestId> {
        let id = format!("{:032x}", fastrand::u128(..));
        HeaderValue::from_str(&id).ok().map(RequestId::new)
    }
}

/// Returns a method as a label. Clients choose methods freely, so unknown ones share a label.
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

/// Gives an error that the framework made, such as for a path that is not UTF-8, the shape of all
/// errors.
fn as_api_error(response: Response) -> Response {
    let is_text = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|it| it.as_bytes().starts_with(b"text/plain"));
    let status = response.status();
    if status == StatusCode::BAD_REQUEST && is_text {
        let message = "The path of your request cannot be read.";
        return ApiError::new(ErrorKind::MalformedRequest, message, serde_json::Value::Null)
            .into_response();
    }
    response
}
