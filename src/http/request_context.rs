//! What the daemon knows of a request beside what its client sent.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, Uri};

use super::access::Caller;
use super::observe::RequestId;
use super::server::Peer;

/// One extension of a request, to which each stage adds what it knows. With one for each of them, the map of
/// extensions would allocate for each, and grow.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestContext {
    /// The connection that the request came through.
    pub(super) peer: Peer,
    /// None before the request is observed.
    pub(super) id: Option<RequestId>,
    /// None before the requirement of the route is checked.
    pub(super) caller: Option<Caller>,
}

impl RequestContext {
    pub(super) fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// Returns the caller of a request whose requirement was checked.
    pub(super) fn caller(extensions: &Extensions) -> Option<&Caller> {
        Self::of(extensions)?.caller.as_ref()
    }

    pub(super) fn of_mut(extensions: &mut Extensions) -> &mut Self {
        extensions.get_or_insert_default()
    }
}

/// Takes the caller that met the requirement of the route: without one, a caller who may do nothing.
impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(RequestContext::caller(&parts.extensions).cloned().unwrap_or_default())
    }
}

/// The URI that the client sent. Below a base path a route sees the rest of it, and this is an extension.
#[derive(Clone, Debug)]
pub(super) struct OriginalUri(pub(super) Uri);

impl OriginalUri {
    pub(super) fn of(parts: &Parts) -> Self {
        let kept = parts.extensions.get::<Self>().cloned();
        kept.unwrap_or_else(|| Self(parts.uri.clone()))
    }
}

impl<S: Sync> FromRequestParts<S> for OriginalUri {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(parts))
    }
}
