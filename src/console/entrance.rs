//! A request for a page before it is known who asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::Query;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use jiff::Timestamp;

use super::context::{Console, PageError, bare_layout, failed, redirect};
use super::layout::{PageFrame, SessionState, escaped};
use super::session::Transport;
use crate::http::{Asker, InProcessError, RequestId};

/// A request before it is known who asks.
#[derive(Debug)]
pub(super) struct Entrance {
    pub(super) console: Arc<Console>,
    pub(super) asker: Asker,
    pub(super) headers: HeaderMap,
    pub(super) path: String,
    /// The path with the query.
    address: String,
    pub(super) request_id: String,
    /// Who the tokens of forms are for: a session, whom a proxy or a certificate names, or all others together.
    pub(super) visitor: String,
    pub(super) session: SessionState,
    /// Whether a proxy or a certificate names the visitor.
    is_known: bool,
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) now: Timestamp,
}

impl Entrance {
    pub(super) fn of(parts: &Parts, console: &Arc<Console>) -> Self {
        let parameters = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let parameters = parameters.map(|it| it.0).unwrap_or_default();
        let id = RequestId::of(&parts.extensions).map(RequestId::as_str);
        let asker = console.api.asker(parts);
        let sender = console.api.known_sender(&asker);
        let is_known = sender.is_some();
        let sender = sender.unwrap_or_default();
        // A token of the request itself says who asks.
        let session = console.sessions.of(&parts.headers).filter(|_| !asker.has_token());
        let (asker, visitor, state) = match session {
            Some((id, token)) => (asker.with_token(&token), id, SessionState::SignedIn),
            None if console.api.takes_tokens() => (asker, sender, SessionState::SignedOut),
            None => (asker, sender, SessionState::None),
        };
        let address = parts.uri.path_and_query().map(|it| it.as_str().to_owned());
        Self {
            console: Arc::clone(console),
            asker,
            visitor,
            session: state,
            is_known,
            address: address.unwrap_or_default(),
            headers: parts.headers.clone(),
            path: parts.uri.path().to_owned(),
            request_id: id.unwrap_or_default().to_owned(),
            parameters: parameters.into_iter().collect(),
            now: Timestamp::now(),
        }
    }

    /// Answers a visitor who may not read: one who can sign in is led to the form.
    pub(super) fn refuse(&self, error: InProcessError) -> Response {
        let base = self.console.base_path.as_str();
        if error.is_unauthenticated() && self.session == SessionState::SignedIn {
            // Its token is gone. Who has a name without it goes on with that.
            self.console.sessions.close(&self.headers);
            if self.is_known {
                return redirect(&format!("{base}{}", self.address));
            }
        }
        let may_sign_in = self.console.api.takes_tokens() && !self.asker.has_token()
            || self.session == SessionState::SignedIn;
        if error.is_unauthenticated() && may_sign_in {
            return redirect(&format!("{base}/login?next={}", escaped(&self.address)));
        }
        self.fail(PageError::Api(error))
    }

    /// Returns the frame of a page for this visitor.
    pub(super) fn layout(&self) -> PageFrame {
        bare_layout(&self.console, self.now)
    }

    /// Returns what a form of this visitor must send.
    pub(super) fn form_token(&self) -> String {
        self.console.sessions.form_token(&self.visitor)
    }

    pub(super) fn accepts_form(&self, sent: &str) -> bool {
        self.console.sessions.accepts(&self.visitor, sent)
    }

    /// Returns whether the visitor uses TLS, to here or to a proxy.
    pub(super) fn transport(&self) -> Transport {
        match self.headers.get("x-forwarded-proto").map(HeaderValue::as_bytes) {
            Some(b"https") => Transport::Tls,
            _ => self.console.transport,
        }
    }

    pub(super) fn fail(&self, trouble: PageError) -> Response {
        let layout = bare_layout(&self.console, self.now);
        failed(layout, trouble, self.request_id.clone(), &self.headers)
    }
}
