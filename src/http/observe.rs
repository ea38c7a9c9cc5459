//! What the router does with every request and answer: the request id, the access log, metrics, and the
//! shape of errors that the framework makes.

use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};

use super::error::ApiError;
use super::types::ErrorKind;
use crate::telemetry::Metrics;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Logs and counts every request of a router.
pub(super) fn observed<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    metrics: Arc<Metrics>,
) -> Router<S> {
    router.layer(from_fn_with_state(metrics, observe))
}

async fn observe(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
    #[expect(clippy::disallowed_methods, reason = "requests take time")]
    let began = std::time::Instant::now();
    let id = request_id(request.headers());
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map(|it| it.as_str().to_owned());
    let mut response = complete_error(next.run(request).await);
    // Without a route, the path is the client's choice: one label for all of them.
    let route = route.unwrap_or_else(|| "none".to_owned());
    let (status, took) = (response.status().as_u16(), began.elapsed());
    let request_id = id.to_str().unwrap_or_default();
    tracing::debug!(target: "clade::access", %method, route, status, ?took, request_id);
    metrics.count_request(route, method_label(&method), status, took);
    response.headers_mut().insert(REQUEST_ID, id);
    // A link that is followed from here must not pass the URL on, which may have had a token in it.
    response.headers_mut().insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Returns the id of a request: the client's, if it is fit for a log, else a random one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let fits = |it: &&HeaderValue| {
        let bytes = it.as_bytes();
        !bytes.is_empty() && bytes.len() <= 128 && bytes.iter().all(u8::is_ascii_graphic)
    };
    headers.get(REQUEST_ID).filter(fits).cloned().unwrap_or_else(|| {
        let random = format!("{:032x}", fastrand::u128(..));
        HeaderValue::from_str(&random).unwrap_or(HeaderValue::from_static("0"))
    })
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
fn complete_error(response: Response) -> Response {
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
