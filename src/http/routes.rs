//! Declares routes: each with its method, its path, what it requires of callers, and its handler.
//!
//! A route cannot be declared without a [`Requirement`], and its handler is called by what checks it: no table of
//! paths beside the router can be forgotten or differ from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{FromRequestParts as _, RawPathParams, Request, State};
use axum::handler::Handler;
use axum::http::Method;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter};
use futures_util::FutureExt as _;
use futures_util::future::{Either, Ready, ready};

use super::access::{Access, Caller, Requirement, Role, UnknownTokens};
use super::error::ApiError;
use super::observe::{NO_ROUTE, ObservedHandler};
use super::original_uri::OriginalUri;
use super::request_context::{Peer, RequestContext};
use super::state::AppState;
use crate::telemetry::Metrics;

/// Routes with what each requires of its callers.
pub(super) struct Routes {
    /// What all their paths begin with.
    prefix: &'static str,
    by_path: BTreeMap<String, MethodRouter<AppState>>,
    declared: Vec<Route>,
    /// Routes that another address has; here they are not found.
    elsewhere: Vec<Route>,
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
    /// Begins a set of routes whose paths all begin with a prefix. They are routes as others: a router within a router
    /// would keep the URI of each request twice.
    pub(super) fn below(prefix: &'static str, metrics: Option<Arc<Metrics>>) -> Self {
        Self {
            prefix,
            by_path: BTreeMap::new(),
            declared: Vec::new(),
            elsewhere: Vec::new(),
            metrics,
        }
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
        let path = format!("{}{path}", self.prefix);
        let guarded = Guarded { requirement, handler };
        let handler = ObservedHandler::new(guarded, &path, self.metrics.as_ref());
        let methods = self.by_path.remove(&path).unwrap_or_default();
        self.by_path.insert(path.clone(), methods.on(filter, handler));
        self.declared.push(Route { method, path, requirement });
        self
    }

    /// Adds all routes of another set.
    pub(super) fn merge(mut self, other: Self) -> Self {
        for (path, methods) in other.by_path {
            let known = self.by_path.remove(&path).unwrap_or_default();
            self.by_path.insert(path, known.merge(methods));
        }
        self.declared.extend(other.declared);
        self
    }

    /// Notes the routes of another address: who asks for one here needs the role of the route to be told that it is
    /// not found, and no other.
    pub(super) fn without(mut self, other: &Self) -> Self {
        self.elsewhere.extend(other.declared.iter().cloned());
        self
    }

    pub(super) fn declared(&self) -> &[Route] {
        &self.declared
    }

    /// Returns the router, and what answers where it has no path. Requests that no route answers need a role as well:
    /// unauthenticated callers are not told which paths there are.
    pub(super) fn into_router(self) -> (Router<AppState>, Router<AppState>) {
        let Self { by_path, declared, elsewhere, metrics, .. } = self;
        let elsewhere: Arc<[Route]> = elsewhere.into();
        let gone = Arc::clone(&elsewhere);
        let not_found = async move |State(state): State<AppState>,
                                    uri: OriginalUri,
                                    request: Request| {
            let of_route = requirement_at(&gone, request.method(), request.uri().path());
            let requirement = of_route.unwrap_or_else(|| Requirement::by_kind(request.method()));
            match admit(state.access(), requirement, None, &request) {
                Ok(()) => ApiError::not_found(&uri),
                Err(error) => error,
            }
        };
        let mut router = Router::new();
        for (path, methods) in by_path {
            let of_path: Arc<[Route]> =
                declared.iter().filter(|it| it.path == path).cloned().collect();
            let (gone, declared_path) = (Arc::clone(&elsewhere), path.clone());
            let method_not_allowed =
                async move |State(state): State<AppState>,
                            OriginalUri(uri): OriginalUri,
                            params: PathParams,
                            request: Request| {
                    let method = request.method();
                    let requirement = requirement_at(&gone, method, &declared_path)
                        .unwrap_or_else(|| requirement_of_undeclared(&of_path, method));
                    match admit(state.access(), requirement, first_parameter(&params), &request) {
                        Ok(()) => {
                            ApiError::method_not_allowed(request.method().as_str(), uri.path())
                        }
                        Err(error) => error,
                    }
                };
            let refused = ObservedHandler::new(method_not_allowed, &path, metrics.as_ref());
            router = router.route(&path, methods.fallback(refused));
        }
        let not_found = ObservedHandler::new(not_found, NO_ROUTE, metrics.as_ref());
        (router, Router::new().fallback(not_found))
    }
}

/// Returns what the route of a method and a path requires; none if it is not among these.
fn requirement_at(routes: &[Route], method: &Method, path: &str) -> Option<Requirement> {
    let found = routes.iter().find(|it| it.method == *method && it.path == path);
    found.map(|it| it.requirement)
}

/// Returns what a method requires that a path does not have: what a declared method of the same kind
/// requires; else what is special to the path, such as `operate`; else the role of its kind.
fn requirement_of_undeclared(of_path: &[Route], method: &Method) -> Requirement {
    let by_kind = Requirement::by_kind(method);
    let same_kind = of_path.iter().find(|it| Requirement::by_kind(&it.method) == by_kind);
    let special = || {
        let plain = [Requirement::Role(Role::Read), Requirement::Role(Role::Write)];
        of_path.iter().find(|it| !plain.contains(&it.requirement))
    };
    same_kind.or_else(special).map_or(by_kind, |it| it.requirement)
}

type PathParams = Result<RawPathParams, RawPathParamsRejection>;

/// A handler that is called if the caller meets the requirement of the route, with the caller in the context of the
/// request.
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

/// Returns a request with its caller in its context, if the caller meets the requirement.
fn pass(
    access: &Access,
    requirement: Requirement,
    mut request: Request,
) -> Result<Request, ApiError> {
    let caller = identify(access, requirement, &request)?;
    // Most may do it for all nodes; the path is read for the others.
    if !requirement.is_met_by(&caller, None) {
        let (mut parts, body) = request.into_parts();
        // The router has read them: nothing is waited for.
        let params = RawPathParams::from_request_parts(&mut parts, &()).now_or_never();
        let node = params.as_ref().and_then(first_parameter);
        requirement.check(&caller, node)?;
        request = Request::from_parts(parts, body);
    }
    let context = RequestContext::of_mut(request.extensions_mut());
    context.caller = Some(caller);
    context.required = requirement.role();
    Ok(request)
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
    let peer = RequestContext::of(request.extensions()).map(|it| &it.peer);
    if peer.is_some_and(|it| it.is_over_limit) && requirement != Requirement::Probe {
        return Err(ApiError::busy());
    }
    if peer.is_some_and(|it| it.is_local) {
        return Ok(Caller::unlimited());
    }
    let tokens =
        if requirement.is_open() { UnknownTokens::Ignored } else { UnknownTokens::Refused };
    access.identify(request, peer.map(Peer::identity).unwrap_or_default(), tokens)
}
