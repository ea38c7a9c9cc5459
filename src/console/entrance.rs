//! A request for a page before it is known who asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::Query;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use jiff::Timestamp;

use super::context::{Console, PageError, bare_layout, failed, redirect};
use super::layout::{PageFrame, SessionState, escaped};
use super::session::{ForeignForm, FormOwner, Transport};
use crate::http::{Asker, InProcessError, RequestId};

/// The parameter of the page to sign in that says that an action was not taken.
pub(super) const NOT_TAKEN: &str = "not_taken";

/// A request before it is known who asks.
#[derive(Debug)]
pub(super) struct Entrance {
    pub(super) console: Arc<Console>,
    pub(super) asker: Asker,
    pub(super) headers: HeaderMap,
    pub(super) path: String,
    method: Method,
    pub(super) uri: Uri,
    /// The path with the query.
    address: String,
    pub(super) request_id: String,
    /// Who the tokens of forms are for.
    pub(super) owner: FormOwner,
    pub(super) session: SessionState,
    /// Why the header of a trusted proxy does not say who asks: whatever else the request brings is not enough then.
    pub(super) fault: Option<InProcessError>,
    pub(super) parameters: BTreeMap<String, String>,
    pub(super) now: Timestamp,
}

impl Entrance {
    pub(super) fn of(parts: &Parts, console: &Arc<Console>) -> Self {
        let parameters = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri);
        let parameters = parameters.map(|it| it.0).unwrap_or_default();
        let id = RequestId::of(&parts.extensions).map(RequestId::as_str);
        let asker = console.api.asker(parts);
        let (sender, fault) = match console.api.known_sender(&asker) {
            Ok(sender) => (sender, None),
            Err(error) => (None, Some(error)),
        };
        // A session ends with its token, and with nothing else that is wrong with a request.
        let session = console.sessions.of(&parts.headers, |it| console.api.knows_token(it));
        // A token of the request itself says who asks.
        let session = session.filter(|_| !asker.has_token());
        let (asker, session, state) = match session {
            Some((id, token)) => (asker.with_token(&token), Some(id), SessionState::SignedIn),
            None if console.api.takes_tokens() => (asker, None, SessionState::SignedOut),
            None => (asker, None, SessionState::None),
        };
        let address = parts.uri.path_and_query().map(|it| it.as_str().to_owned());
        Self {
            console: Arc::clone(console),
            asker,
            owner: FormOwner { session, sender },
            session: state,
            fault,
            method: parts.method.clone(),
            uri: parts.uri.clone(),
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
        let may_sign_in = self.console.api.takes_tokens() && !self.asker.has_token()
            || self.session == SessionState::SignedIn;
        if !error.is_unauthenticated() || !may_sign_in || self.fault.is_some() {
            return self.fail(PageError::Api(error));
        }
        if matches!(self.method, Method::GET | Method::HEAD) {
            return redirect(&format!("{base}/login?next={}", escaped(&self.address)));
        }
        // What the form sent is not kept, and its address is not a page.
        redirect(&format!("{base}/login?{NOT_TAKEN}=true"))
    }

    /// Returns the frame of a page for this visitor, with a way to sign in or out.
    pub(super) fn layout(&self) -> PageFrame {
        let mut layout = bare_layout(&self.console, self.now);
        layout.session = self.session;
        layout.form_token = self.console.sessions.form_token(&self.owner);
        layout
    }

    /// Checks that a form is from a page that this visitor got.
    pub(super) fn check_form(&self, sent: &str) -> Result<(), ForeignForm> {
        self.console.sessions.check_form(&self.uri, &self.headers, &self.owner, sent)
    }

    /// Returns whether the visitor uses TLS, to here or to a proxy.
    pub(super) fn transport(&self) -> Transport {
        Transport::of(&self.headers, self.console.transport)
    }

    pub(super) fn fail(&self, trouble: PageError) -> Response {
        failed(self.layout(), trouble, Vec::new(), self.request_id.clone(), &self.headers)
    }
}
