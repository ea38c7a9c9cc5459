//! Passes each request to its handler, by its method and its path.
//!
//! axum has a router for this, and handlers use its extractors. But for each request that router copies the names and
//! values of parameters, clones a boxed service and boxes a future. A request of the API goes from a table straight to
//! its handler; pages have a router of axum, which is asked where the table has no path.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::header::Entry;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Method, Uri, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::{Either, Ready, ready};
use tower::ServiceExt as _;

use super::access::{Requirement, Role};
use super::admission::{admit, check};
use super::error::ApiError;
use super::observe::{NO_ROUTE, Observation};
use super::original_uri::OriginalUri;
use super::route_tree::{ParameterRanges, RouteTree};
use super::routes::{ErasedHandler, HandlerFuture, Route, Routes};
use super::server::RequestHandler;
use super::state::AppState;
use crate::telemetry::{Metrics, RequestMetrics};

/// Answers the requests of an address.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    table: Arc<RouteTable>,
    state: AppState,
    /// What paths may begin with; none if that is empty.
    base: Option<Arc<str>>,
}

#[derive(Debug)]
struct RouteTable {
    paths: RouteTree<PathRoutes>,
    unrouted: Unrouted,
    pages: Option<Router>,
}

/// The routes of a path.
#[derive(Debug)]
struct PathRoutes {
    /// The path as it was declared.
    path: Box<str>,
    methods: Vec<(Route, ErasedHandler)>,
    /// None if their requests are not counted.
    metrics: Option<&'static RequestMetrics>,
}

/// Answers requests that no route answers. They need a role as well: unauthenticated callers are not told which paths
/// there are.
#[derive(Clone, Debug)]
pub(super) struct Unrouted {
    state: AppState,
    /// Routes of another address.
    elsewhere: Arc<[Route]>,
    metrics: Option<&'static RequestMetrics>,
}

impl Dispatcher {
    /// Takes the routes of an address without pages, with metrics if their requests are counted.
    pub(super) fn new(routes: Routes, state: AppState, metrics: Option<&Arc<Metrics>>) -> Self {
        Self::with_pages(routes, state, metrics, |_| None)
    }

    /// Takes the routes of an address, and the router that is asked for all other paths. Its fallback is the routes' own,
    /// where it has no better one.
    pub(super) fn with_pages(
        routes: Routes,
        state: AppState,
        metrics: Option<&Arc<Metrics>>,
        pages: impl FnOnce(Unrouted) -> Option<Router>,
    ) -> Self {
        let of_route = |path: &str| metrics.map(|it| RequestMetrics::of_route(path, it));
        let (declared, elsewhere) = routes.into_parts();
        let mut paths = RouteTree::default();
        for (route, handler) in declared {
            let at: &mut PathRoutes = paths.entry(&route.path).get_or_insert_with(|| PathRoutes {
                path: route.path.as_str().into(),
                methods: Vec::new(),
                metrics: of_route(&route.path),
            });
            at.methods.push((route, handler));
        }
        let unrouted = Unrouted {
            state: state.clone(),
            elsewhere: elsewhere.into(),
            metrics: of_route(NO_ROUTE),
        };
        let pages = pages(unrouted.clone());
        Self { table: Arc::new(RouteTable { paths, unrouted, pages }), state, base: None }
    }

    /// Answers below a base path as well, unless that is empty.
    pub(super) fn below(self, base: &str) -> Self {
        Self { base: Some(base.into()).filter(|_| !base.is_empty()), ..self }
    }
}

impl RequestHandler for Dispatcher {
    type Future = Dispatched;

    fn for_connection(&self) -> Self {
        Self { state: self.state.for_connection(), ..self.clone() }
    }

    fn handle(&self, mut request: Request) -> Dispatched {
        if let Some(base) = &self.base {
            strip_base(base, &mut request);
        }
        let RouteTable { paths, unrouted, pages } = &*self.table;
        match (paths.find(request.uri().path()), pages) {
            (Some((found, parameters)), _) => found.answer(self, parameters, request),
            (None, None) => Dispatched::now(unrouted.answer(request)),
            (None, Some(pages)) => Dispatched::by_pages(pages.clone(), request),
        }
    }
}

/// Has routes below a base path see the rest of the URI.
fn strip_base(base: &str, request: &mut Request) {
    let uri = request.uri();
    let Some(path) = uri.path().strip_prefix(base) else { return };
    // As axum does it, two slashes after the base path are one.
    let (slash, path) = match path.strip_prefix('/') {
        Some(path) if path.starts_with('/') => ("", path),
        Some(path) => ("/", path),
        None if path.is_empty() => ("/", path),
        None => return,
    };
    let query = uri.query().map(|it| format!("?{it}")).unwrap_or_default();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(format!("{slash}{path}{query}")).ok();
    // A part of what was a URI is one.
    if let Ok(rest) = Uri::from_parts(parts) {
        let whole = std::mem::replace(request.uri_mut(), rest);
        request.extensions_mut().insert(OriginalUri(whole));
    }
}

impl PathRoutes {
    fn answer(
        &self,
        dispatcher: &Dispatcher,
        parameters: ParameterRanges,
        mut request: Request,
    ) -> Dispatched {
        let completion = Completion::begin(self.metrics, &mut request);
        let Dispatcher { table, state, .. } = dispatcher;
        let Some((route, handler)) = self.route(request.method()) else {
            let error = self.method_not_allowed(&table.unrouted, &parameters, &request);
            return Dispatched::now(completion.complete(error.into_response()));
        };
        match admit(state.access(), route.requirement, parameters, &mut request) {
            Ok(()) => Dispatched {
                answer: Either::Right(handler.call(request, state.clone())),
                completion: Some(completion),
            },
            Err(error) => Dispatched::now(completion.complete(error.into_response())),
        }
    }

    /// Returns the route of a method. `HEAD` is answered by what answers `GET`.
    fn route(&self, method: &Method) -> Option<&(Route, ErasedHandler)> {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        self.methods.iter().find(|(it, _)| it.method == *method)
    }

    /// Returns the error for a method that the path does not have.
    fn method_not_allowed(
        &self,
        unrouted: &Unrouted,
        parameters: &ParameterRanges,
        request: &Request,
    ) -> ApiError {
        let method = request.method();
        let requirement = requirement_at(&unrouted.elsewhere, method, &self.path)
            .unwrap_or_else(|| self.requirement_of_undeclared(method));
        match check(unrouted.state.access(), requirement, parameters, request) {
            Ok(()) => {
                let OriginalUri(uri) = OriginalUri::of(request.uri(), request.extensions());
                let error = ApiError::method_not_allowed(method.as_str(), uri.path());
                error.with_header(header::ALLOW, &self.allowed())
            }
            Err(error) => error,
        }
    }

    /// Returns the methods of the path, sorted.
    fn allowed(&self) -> String {
        let mut methods: Vec<&str> =
            self.methods.iter().map(|(it, _)| it.method.as_str()).collect();
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.sort_unstable();
        methods.join(",")
    }

    /// Returns what a method requires that the path does not have: what a declared method of the same kind
    /// requires; else what is special to the path, such as `operate`; else the role of its kind.
    fn requirement_of_undeclared(&self, method: &Method) -> Requirement {
        let by_kind = Requirement::by_kind(method);
        let declared = || self.methods.iter().map(|(route, _)| route);
        let same_kind = declared().find(|it| Requirement::by_kind(&it.method) == by_kind);
        let special = || {
            let plain = [Requirement::Role(Role::Read), Requirement::Role(Role::Write)];
            declared().find(|it| !plain.contains(&it.requirement))
        };
        same_kind.or_else(special).map_or(by_kind, |it| it.requirement)
    }
}

impl Unrouted {
    pub(super) fn answer(&self, mut request: Request) -> Response {
        let completion = Completion::begin(self.metrics, &mut request);
        let (method, uri) = (request.method(), request.uri());
        let requirement = requirement_at(&self.elsewhere, method, uri.path())
            .unwrap_or_else(|| Requirement::by_kind(method));
        let parameters = ParameterRanges::default();
        let error = match check(self.state.access(), requirement, &parameters, &request) {
            Ok(()) => ApiError::not_found(&OriginalUri::of(uri, request.extensions())),
            Err(error) => error,
        };
        completion.complete(error.into_response())
    }
}

/// Returns what the route of a method and a path requires; none if it is not among these.
fn requirement_at(routes: &[Route], method: &Method, path: &str) -> Option<Requirement> {
    let found = routes.iter().find(|it| it.method == *method && it.path == path);
    found.map(|it| it.requirement)
}

/// What is left to do when there is a response.
#[derive(Debug)]
struct Completion {
    observation: Option<Observation>,
    is_head: bool,
}

impl Completion {
    /// Begins with a request, which is logged and counted if there are metrics for it.
    fn begin(metrics: Option<&'static RequestMetrics>, request: &mut Request) -> Self {
        let observation = metrics.map(|it| Observation::begin(request, it));
        Self { observation, is_head: request.method() == Method::HEAD }
    }

    fn complete(self, response: Response) -> Response {
        let response = match self.observation {
            Some(observation) => observation.end(response),
            None => response,
        };
        with_length(response, self.is_head)
    }
}

/// Names the length of a body, and leaves out that of the answer to a `HEAD`.
fn with_length(mut response: Response, is_head: bool) -> Response {
    if let Some(length) = response.body().size_hint().exact()
        && let Entry::Vacant(entry) = response.headers_mut().entry(header::CONTENT_LENGTH)
        // A text of the right length is the one allocation; from a number there would be two.
        && let Ok(length) = HeaderValue::try_from(length.to_string())
    {
        entry.insert(length);
    }
    if is_head {
        *response.body_mut() = Body::empty();
    }
    response
}

/// The answer to a request.
pub struct Dispatched {
    answer: Either<Ready<Response>, HandlerFuture>,
    completion: Option<Completion>,
}

impl Dispatched {
    fn now(response: Response) -> Self {
        Self { answer: Either::Left(ready(response)), completion: None }
    }

    /// Asks the router of pages, which completes its responses itself.
    fn by_pages(pages: Router, request: Request) -> Self {
        let answer = async {
            match pages.oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        };
        Self { answer: Either::Right(Box::pin(answer)), completion: None }
    }
}

impl Future for Dispatched {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response> {
        let response = ready!(Pin::new(&mut self.answer).poll(context));
        Poll::Ready(match self.completion.take() {
            Some(completion) => completion.complete(response),
            None => response,
        })
    }
}

#[cfg(test)]
mod tests;
