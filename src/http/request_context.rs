//! What the daemon knows of a request beside what its client sent.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderName, HeaderValue};
use uuid::Uuid;
use uuid::fmt::Simple;

use super::access::{Caller, PeerIdentity, Role};
use super::route_tree::ParameterRanges;
use crate::facts::CertificateFacts;

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
    /// The role that the route requires of its caller.
    pub(super) required: Option<Role>,
    /// Where the path has parameters; nowhere before the requirement of the route is checked.
    pub(super) parameters: ParameterRanges,
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

/// What requests inherit from their connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Peer {
    /// The client certificate.
    pub(super) certificate: Option<Arc<CertificateFacts>>,
    /// The address of the other end; the unix socket has none.
    pub(super) address: Option<IpAddr>,
    /// Whether it came through the unix socket: the mode of its file decides who may connect.
    pub(super) is_local: bool,
    /// Whether it is beyond the connection limit: only probes are answered.
    pub(super) is_over_limit: bool,
}

impl Peer {
    /// Returns what authentication uses of the connection.
    pub(super) fn identity(&self) -> PeerIdentity<'_> {
        PeerIdentity { certificate: self.certificate.as_ref(), address: self.address }
    }
}

/// The header of the id of a request.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request: that of its client, if it is fit for a log. It is a header of the response.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(IdText);

#[derive(Clone, Debug)]
enum IdText {
    Given(HeaderValue),
    /// Hexadecimal digits. A copy of them allocates nothing; the first one of a header does.
    Random([u8; Simple::LENGTH]),
}

impl RequestId {
    /// Returns the id of an observed request.
    pub(crate) fn of(extensions: &Extensions) -> Option<&Self> {
        RequestContext::of(extensions)?.id.as_ref()
    }

    pub(super) fn choose(request: &Request) -> Self {
        let fits = |it: &&HeaderValue| {
            let bytes = it.as_bytes();
            !bytes.is_empty() && bytes.len() <= 128 && bytes.iter().all(u8::is_ascii_graphic)
        };
        let given = request.headers().get(REQUEST_ID).filter(fits).cloned();
        Self(given.map_or_else(
            || {
                let mut text = [0; Simple::LENGTH];
                Uuid::from_u128(fastrand::u128(..)).simple().encode_lower(&mut text);
                IdText::Random(text)
            },
            IdText::Given,
        ))
    }

    pub(super) fn into_header(self) -> HeaderValue {
        match self.0 {
            IdText::Given(header) => header,
            IdText::Random(text) => {
                HeaderValue::from_bytes(&text).unwrap_or(HeaderValue::from_static("none"))
            }
        }
    }

    /// Returns the text.
    pub(crate) fn as_str(&self) -> &str {
        match &self.0 {
            IdText::Given(header) => header.to_str().unwrap_or_default(),
            IdText::Random(text) => std::str::from_utf8(text).unwrap_or_default(),
        }
    }
}
