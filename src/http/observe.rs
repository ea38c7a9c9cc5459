//! What happens to every request and response: the request id, the access log, metrics, and the shape of
//! errors that the framework makes.
//!
//! The routes of the API are observed by what calls their handlers, and pages by a layer each. The layers of `tower-http`
//! do not fit: the access log and the metrics of a request share its route and its duration; a body limit differs by
//! route, answers in the shape of all errors and counts the memory of the parsed body; and compression would hide the
//! length of responses, by which connections are limited. Each layer is also cloned and boxed with each request, which
//! took a tenth of the time of an answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use tower::{Layer, Service};

use super::error::ApiError;
use super::request_context::{REQUEST_ID, RequestContext, RequestId};
use super::server::BUFFERED_BYTES;
use super::snapshot_context::ABOUT_SNAPSHOT;
use crate::telemetry::{Metrics, RequestMetrics};

/// Caches know answers of one caller from those of another by `Authorization` alone, and callers have other credentials, too.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// A link that is followed from a page here must not pass the URL on, which may have had a token in it.
const NO_REFERRER: HeaderValue = HeaderValue::from_static("no-referrer");

/// The route of requests that none has: their path is the client's choice, so all of them share a label.
pub(super) const NO_ROUTE: &str = "none";

/// Logs and counts the requests of a service as those of a route.
#[derive(Clone, Debug)]
pub(super) struct ObserveLayer(&'static RequestMetrics);

impl ObserveLayer {
    pub(super) fn new(route: &str, metrics: &Arc<Metrics>) -> Self {
        Self(RequestMetrics::of_route(route, metrics))
    }
}

impl<S> Layer<S> for ObserveLayer {
    type Service = Observed<S>;

    fn layer(&self, inner: S) -> Observed<S> {
        Observed { inner, metrics: self.0 }
    }
}

/// What is known of a request until its response is logged and counted.
#[derive(Debug)]
pub(super) struct Observation {
    began: Instant,
    id: RequestId,
    method: Method,
    metrics: &'static RequestMetrics,
}

impl Observation {
    /// Begins with a request, and gives it its id.
    pub(super) fn begin(request: &mut Request, metrics: &'static RequestMetrics) -> Self {
        #[expect(clippy::disallowed_methods, reason = "requests take time")]
        let began = Instant::now();
        let id = RequestId::choose(request);
        RequestContext::of_mut(request.extensions_mut()).id = Some(id.clone());
        Self { began, id, method: request.method().clone(), metrics }
    }

    /// Ends with the response, and returns it as it is sent.
    pub(super) fn end(self, response: Response) -> Response {
        let Self { began, id, method, metrics } = self;
        let mut response = within_limit(as_api_error(response));
        let (status, took) = (response.status().as_u16(), began.elapsed());
        let request_id = id.as_str();
        let route = metrics.route();
        tracing::debug!(target: "clade::access", %method, route, status, ?took, request_id);
        metrics.count(method_label(&method), status, took);
        response.headers_mut().insert(REQUEST_ID, id.into_header());
        response.headers_mut().insert(header::REFERRER_POLICY, NO_REFERRER);
        response.headers_mut().entry(header::CACHE_CONTROL).or_insert(NO_STORE);
        response
    }
}

/// Answers requests, and logs and counts them.
#[derive(Clone, Debug)]
pub(super) struct Observed<S> {
    inner: S,
    metrics: &'static RequestMetrics,
}

impl<S> Service<Request> for Observed<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let observation = Observation::begin(&mut request, self.metrics);
        let answer = self.inner.call(request);
        Box::pin(async move { Ok(observation.end(answer.await?)) })
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

/// Replaces an answer that has more bytes than all connections together may buffer by an error: its connection would end
/// within it, and its client could not tell that from a failure of the network.
fn within_limit(response: Response) -> Response {
    let most = BUFFERED_BYTES;
    let length = response.body().size_hint().exact().unwrap_or_default();
    if usize::try_from(length).is_ok_and(|it| it <= most) {
        return response;
    }
    let mut error = ApiError::answer_too_large(length, most).into_response();
    for name in ABOUT_SNAPSHOT {
        if let Some(value) = response.headers().get(&name) {
            error.headers_mut().insert(name, value.clone());
        }
    }
    error
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
        return ApiError::unreadable_path().into_response();
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};

    use super::*;
    use crate::http::snapshot_context::name_commit;

    fn answer(bytes: usize) -> Response {
        let mut answer = Body::from(vec![b' '; bytes]).into_response();
        name_commit(&mut answer, "1".repeat(40).parse().unwrap());
        answer
    }

    #[tokio::test]
    async fn an_answer_that_could_not_be_sent_whole_is_an_error_before_its_first_byte() {
        let whole = within_limit(answer(BUFFERED_BYTES));
        assert_eq!(whole.status(), StatusCode::OK);
        let error = within_limit(answer(BUFFERED_BYTES + 1));
        assert_eq!(error.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(error.headers()["x-clade-commit"], "1".repeat(40));
        let body = to_bytes(error.into_body(), 1 << 10).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["kind"], "payload-too-large");
        let message =
            "The answer would have 50331649 bytes, and 48 MiB is the most that one may have.";
        assert_eq!(body["msg"], message);
    }
}
