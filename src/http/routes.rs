//! Declares routes: each with its method, its path, what it requires of callers, and its handler.
//!
//! A route cannot be declared without a [`Requirement`], and its handler is called by what checks it: no table of
//! paths beside the router can be forgotten or differ from it.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{
    FromRequestParts as _, MatchedPath, OriginalUri, RawPathParams, Request, State,
};
use axum::handler::Handler;
use axum::http::Method;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use futures_util::FutureExt as _;
use futures_util::future::{Either, Ready, ready};

use super::access::{Access, Caller, Requirement, Role};
use super::error::ApiError;
use super::observe::ObservedHandler;
use super::server::Peer;
use super::state::AppState;
use crate::telemetry::Metrics;

/// Routes with what each requires of its callers.
pub(super) struct Routes {
    router: Router<AppState>,
    declared: Vec<Route>,
    /// Counts requests, if they are counted.
    metrics: Option<Arc<Metrics>>,
}

/// A declared route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) requirement: Requirement,
}

impl Route {
    /// Returns whether a path of the document is this one: a parameter for the rest is one as others there.
    pub(super) fn is_at(&self, path: &str) -> bool {
        self.path.replace("{*", "{") == path
    }
}

impl Routes {
    pub(super) fn new(metrics: Option<Arc<Metrics>>) -> Self {
        Self { router: Router::new(), declared: Vec::new(), metrics }
    }

    /// Declares a route that reads; `HEAD` is answered as well.
    pub(super) fn get<T: 'static>(
        self,
        path: &'static str,
        requirement: Requirement,
        handler: impl Handler<T, AppState, Future: Unpin>,
    ) -> Self {
        self.on((MethodFilter::GET, Method::GET), path, requirement, handler)
    }

    pub(super) fn post<T: 'static>(
        self,
        path: &'static str,
        requirement: Requirement,
        handler: impl Handler<T, AppState, Future: Unpin>,
    ) -> Self {
        self.on((MethodFilter::POST, Method::POST), path, requirement, handler)
    }

    pub(super) fn put<T: 'static>(
        self,
        path: &'static str,
        requirement: Requirement,
        handler: impl Handler<T, AppState, Future: Unpin>,
    ) -> Self {
        self.on((MethodFilter::PUT, Method::PUT), path, requirement, handler)
    }

    pub(super) fn delete<T: 'static>(
        self,
        path: &'static str,
        requirement: Requirement,
        handler: impl Handler<T, AppState, Future: Unpin>,
    ) -> Self {
        self.on((MethodFilter::DELETE, Method::DELETE), path, requirement, handler)
    }

    fn on<T: 'static>(
        mut self,
        (filter, method): (MethodFilter, Method),
        path: &'static str,
        requirement: Requirement,
        handler: impl Handler<T, AppState, Future: Unpin>,
    ) -> Self {
        let guarded = Guarded { requirement, handler };
        let handler = ObservedHandler::new(guarded, self.metrics.clone());
        self.router = self.router.route(path, on(filter, handler));
        self.declared.push(Route { method, path: path.to_owned(), requirement });
        self
    }

    /// Adds all routes of another set.
    pub(super) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.declared.extend(other.declared);
        self
    }

    /// Adds all routes of another set below a prefix.
    pub(super) fn nest(mut self, prefix: &str, other: Self) -> Self {
        self.router = self.router.nest(prefix, other.router);
        let below = other.declared.into_iter();
        self.declared.extend(below.map(|it| Route { path: format!("{prefix}{}", it.path), ..it }));
        self
    }

    pub(super) fn declared(&self) -> &[Route] {
        &self.declared
    }

    /// Returns the router, and what answers where it has no path. Requests that no route answers need a role as well:
    /// unauthenticated callers are not told which paths there are.
    pub(super) fn into_router(self) -> (Router<AppState>, Router<AppState>) {
        let Self { router, declared, metrics } = self;
        let declared: Arc<[Route]> = declared.into();
        let not_found =
            async |State(state): State<AppState>, uri: OriginalUri, request: Request| {
                let requirement = Requirement::by_kind(request.method());
                match admit(state.access(), requirement, None, &request) {
                    Ok(()) => ApiError::not_found(&uri),
                    Err(error) => error,
                }
            };
        let method_not_allowed = async move |State(state): State<AppState>,
                                             OriginalUri(uri): OriginalUri,
                                             route: MatchedPath,
                                             params: PathParams,
                                             request: Request| {
            let requirement =
                requirement_of_undeclared(&declared, request.method(), route.as_str());
            match admit(state.access(), requirement, first_parameter(&params), &request) {
                Ok(()) => ApiError::method_not_allowed(request.method().as_str(), uri.path()),
                Err(error) => error,
            }
        };
        let method_not_allowed = ObservedHandler::new(method_not_allowed, metrics.clone());
        let router = router.method_not_allowed_fallback(method_not_allowed);
        (router, Router::new().fallback(ObservedHandler::new(not_found, metrics)))
    }
}

/// Returns what a method requires that a path does not have: what a declared method of the same kind
/// requires; else what is special to the path, such as `operate`; else the role of its kind.
fn requirement_of_undeclared(declared: &[Route], method: &Method, path: &str) -> Requirement {
    let by_kind = Requirement::by_kind(method);
    let of_path = || declared.iter().filter(|it| it.path == path);
    let same_kind = of_path().find(|it| Requirement::by_kind(&it.method) == by_kind);
    let special = || {
        let plain = [Requirement::Role(Role::Read), Requirement::Role(Role::Write)];
        of_path().find(|it| !plain.contains(&it.requirement))
    };
    same_kind.or_else(special).map_or(by_kind, |it| it.requirement)
}

type PathParams = Result<RawPathParams, RawPathParamsRejection>;

/// A handler that is called if the caller meets the requirement of the route, with the caller as an extension.
///
/// A middleware would do the same, and would box and clone a service for each request.
#[derive(Clone)]
struct Guarded<H> {
    requirement: Requirement,
    handler: H,
}

impl<T: 'static, H: Handler<T, AppState>> Handler<T, AppState> for Guarded<H> {
    type Future = Either<Ready<Response>, H::Future>;

    fn call(self, request: Request, state: AppState) -> Self::Future {
        match pass(state.access(), self.requirement, request) {
            Ok(request) => Either::Right(self.handler.call(request, state)),
            Err(error) => Either::Left(ready(error.into_response())),
        }
    }
}

/// Returns a request with its caller as an extension, if the caller meets the requirement.
fn pass(access: &Access, requirement: Requirement, request: Request) -> Result<Request, ApiError> {
    let caller = identify(access, requirement, &request)?;
    let (mut parts, body) = request.into_parts();
    // Most may do it for all nodes; the path is read for the others.
    if !requirement.is_met_by(&caller, None) {
        // The router has read them: nothing is waited for.
        let params = RawPathParams::from_request_parts(&mut parts, &()).now_or_never();
        let node = params.as_ref().and_then(first_parameter);
        requirement.check(&caller, node)?;
    }
    parts.extensions.insert(caller);
    Ok(Request::from_parts(parts, body))
}

/// Returns the first parameter of a path: the node, where a requirement is about one. A path that is not
/// UTF-8 names no node.
fn first_parameter(params: &PathParams) -> Option<&str> {
    params.as_ref().ok()?.iter().next().map(|(_, value)| value)
}

/// Authenticates a request and checks what it requires.
fn admit(
    access: &Access,
    requirement: Requirement,
    node: Option<&str>,
    request: &Request,
) -> Result<(), ApiError> {
    requirement.check(&identify(access, requirement, request)?, node)
}

/// Returns who sends a request. Beyond the connection limit only probes are answered.
fn identify(
    access: &Access,
    requirement: Requirement,
    request: &Request,
) -> Result<Caller, ApiError> {
    let peer = request.extensions().get::<Peer>();
    if peer.is_some_and(|it| it.is_over_limit) && requirement != Requirement::Probe {
        return Err(ApiError::busy());
    }
    if peer.is_some_and(|it| it.is_local) {
        return Ok(Caller::unlimited());
    }
    access.identify(request, peer.map(Peer::identity).unwrap_or_default())
}
