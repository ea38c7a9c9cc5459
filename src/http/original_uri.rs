//! The URI of a request as its client sent it.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, Uri};

/// The URI that the client sent. Below a base path a route sees the rest of it, and this is an extension.
#[derive(Clone, Debug)]
pub(super) struct OriginalUri(pub(super) Uri);

impl OriginalUri {
    pub(super) fn of(uri: &Uri, extensions: &Extensions) -> Self {
        let kept = extensions.get::<Self>().cloned();
        kept.unwrap_or_else(|| Self(uri.clone()))
    }
}

impl<S: Sync> FromRequestParts<S> for OriginalUri {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.uri, &parts.extensions))
    }
}
