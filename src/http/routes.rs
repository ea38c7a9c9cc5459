//! Declares routes: each with its method, its path, what it requires of callers, and its handler.
//!
//! A route cannot be declared without a [`Requirement`], and its handler is called by what checks it
//! ([`dispatch`](super::dispatch)): no table of paths beside the routes can be forgotten or differ from them.

use std::fmt;
use std::pin::Pin;

use axum::extract::Request;
use axum::handler::Handler;
use axum::http::Method;
use axum::response::Response;

use super::access::Requirement;
use super::state::AppState;

/// The answer of a handler. The extractors of axum box it, and it is boxed only there.
pub(super) type HandlerFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler without its type.
pub(super) struct ErasedHandler(Box<dyn Fn(Request, AppState) -> HandlerFuture + Send + Sync>);

impl fmt::Debug for ErasedHandler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ErasedHandler")
    }
}

impl ErasedHandler {
    fn new<T: 'static>(handler: impl Handler<T, AppState, Future = HandlerFuture>) -> Self {
        // A function is copied for nothing.
        Self(Box::new(move |request, state| handler.clone().call(request, state)))
    }

    pub(super) fn call(&self, request: Request, state: AppState) -> HandlerFuture {
        (self.0)(request, state)
    }
}

/// Routes with what each requires of its callers.
#[derive(Debug)]
pub(super) struct Routes {
    /// What the paths of those begin with that are declared next.
    prefix: &'static str,
    declared: Vec<(Route, ErasedHandler)>,
    /// Routes that another address has; here they are not found.
    elsewhere: Vec<Route>,
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
    /// Begins a set of routes whose paths all begin with a prefix.
    pub(super) fn below(prefix: &'static str) -> Self {
        Self { prefix, declared: Vec::new(), elsewhere: Vec::new() }
    }

    /// Declares a route that reads; `HEAD` is answered as well.
    pub(super) fn get<T: 'static>(
        self,
        path: &'static str,
        requirement: Requirement,
        handler: impl Handler<T, AppState, Future = HandlerFuture>,
    ) -> Self {
        self.on(Method::GET, path, requirement, handler)
    }

    pub(super) fn post<T: 'static>(
        self,
        path: &'static str,
        requirement: Requirement,
        handler: impl Handler<T, AppState, Future = HandlerFuture>,
    ) -> Self {
        self.on(Method::POST, path, requirement, handler)
    }

    pub(super) fn put<T: 'static>(
        self,
        path: &'static str,
        requirement: Requirement,
        handler: impl Handler<T, AppState, Future = HandlerFuture>,
    ) -> Self {
        self.on(Method::PUT, path, requirement, handler)
    }

    pub(super) fn delete<T: 'static>(
        self,
        path: &'static str,
        requirement: Requirement,
        handler: impl Handler<T, AppState, Future = HandlerFuture>,
    ) -> Self {
        self.on(Method::DELETE, path, requirement, handler)
    }

    fn on<T: 'static>(
        mut self,
        method: Method,
        path: &'static str,
        requirement: Requirement,
        handler: impl Handler<T, AppState, Future = HandlerFuture>,
    ) -> Self {
        let path = format!("{}{path}", self.prefix);
        self.declared.push((Route { method, path, requirement }, ErasedHandler::new(handler)));
        self
    }

    /// Adds all routes of another set.
    pub(super) fn merge(mut self, other: Self) -> Self {
        self.declared.extend(other.declared);
        self
    }

    /// Notes the routes of another address: who asks for one here needs the role of the route to be told that it is
    /// not found, and no other.
    pub(super) fn without(mut self, other: &Self) -> Self {
        self.elsewhere.extend(other.declared.iter().map(|(route, _)| route.clone()));
        self
    }

    pub(super) fn declared(&self) -> impl Iterator<Item = &Route> {
        self.declared.iter().map(|(route, _)| route)
    }

    /// Returns the routes with their handlers, and those of another address.
    pub(super) fn into_parts(self) -> (Vec<(Route, ErasedHandler)>, Vec<Route>) {
        (self.declared, self.elsewhere)
    }
}
