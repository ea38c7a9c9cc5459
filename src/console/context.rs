//! What all pages share: the API that they ask, assets, sessions, and how errors are shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::rejection::FormRejection;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::{Form, Json};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::asset::Assets;
use super::base_path::BasePath;
use super::failure::{ErrorPage, help};
use super::gone_pins::PinMemory;
use super::layout::{Links, PageFrame, Section, SessionState};
use super::page;
use super::session::{ForeignForm, Sessions, Transport};
use crate::forge::ForgePages;
use crate::http::types::{Condition, Error, ErrorKind};
use crate::http::{InProcessApi, InProcessError, takes_pages};

/// What all pages share.
#[derive(Debug)]
pub(super) struct Console {
    pub(super) api: InProcessApi,
    pub(super) assets: Assets,
    pub(super) base_path: BasePath,
    pub(super) transport: Transport,
    pub(super) sessions: Arc<Sessions>,
    /// The pages of the repository on its forge, which stay the same.
    pub(super) forge: OnceCell<Option<Arc<ForgePages>>>,
    pub(super) pins: PinMemory,
}

impl Console {
    /// Returns the pages of the repository on its forge; none while the repository cannot be opened.
    pub(super) async fn forge_pages(&self) -> Option<Arc<ForgePages>> {
        let find = async || self.api.forge_pages().await.map(|it| it.map(Arc::new));
        self.forge.get_or_try_init(find).await.ok()?.clone()
    }

    /// Returns what writes addresses of pages about what is live.
    pub(super) fn links(&self) -> Links {
        let base = self.base_path.as_str().to_owned();
        Links { base, routes: self.api.address_routes(), ..Links::default() }
    }
}

/// What cannot be shown.
#[derive(Debug)]
pub(super) enum PageError {
    /// A route answered with an error.
    Api(InProcessError),
    /// There is no such page.
    NotFound(String),
    /// A form is not accepted.
    Refused(ErrorKind, String),
}

impl PageError {
    /// Returns the status of the page.
    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Api(error) => error.status,
            Self::NotFound(_) => ErrorKind::NotFound.status(),
            Self::Refused(kind, _) => kind.status(),
        }
    }

    /// Returns what it says to the visitor.
    pub(super) fn message(self) -> String {
        match self {
            Self::Api(error) => error.error.msg,
            Self::NotFound(message) | Self::Refused(_, message) => message,
        }
    }
}

impl From<InProcessError> for PageError {
    fn from(error: InProcessError) -> Self {
        Self::Api(error)
    }
}

impl From<ForeignForm> for PageError {
    fn from(error: ForeignForm) -> Self {
        Self::Refused(ErrorKind::PermissionDenied, error.to_string())
    }
}

/// Returns the frame of a page for a visitor who is not known.
pub(super) fn bare_layout(console: &Console, now: Timestamp) -> PageFrame {
    PageFrame {
        section: Section::Other,
        links: console.links(),
        style: console.assets.style.address.clone(),
        script: console.assets.script.address.clone(),
        icon: console.assets.icon.address.clone(),
        live: None,
        commit: None,
        here: String::new(),
        point: None,
        user: None,
        session: SessionState::None,
        form_token: String::new(),
        operates: false,
        now,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        search: String::new(),
    }
}

/// Writes an error as a page, with the conditions of the daemon that may be why.
pub(super) fn failed(
    layout: PageFrame,
    trouble: PageError,
    conditions: Vec<Condition>,
    request_id: String,
    headers: &HeaderMap,
) -> Response {
    let (status, error) = match trouble {
        PageError::Api(InProcessError { status, error }) => (status, *error),
        PageError::NotFound(message) => refused(ErrorKind::NotFound, message, layout.here.clone()),
        PageError::Refused(kind, message) => refused(kind, message, Value::Null),
    };
    if !takes_pages(headers) {
        return (status, [(header::VARY, "accept")], Json(error)).into_response();
    }
    let Error { kind, msg: message, .. } = error;
    let kind = kind.into_owned();
    let help = help(status);
    let page = ErrorPage { layout, status, kind, message, help, request_id, conditions };
    page::write(status, &page, headers)
}

/// Refuses a request of a program.
pub(super) fn refusal(kind: ErrorKind, message: &str, path: &str) -> Response {
    let (status, error) = refused(kind, message.to_owned(), path);
    (status, Json(error)).into_response()
}

fn refused(kind: ErrorKind, msg: String, details: impl Into<Value>) -> (StatusCode, Error) {
    (kind.status(), Error { kind: kind.as_str().into(), msg, details: details.into() })
}

/// What a form sends.
pub(super) type FormFields = BTreeMap<String, String>;

/// Returns what a form sends, or why that cannot be read.
pub(super) fn read_form(
    sent: Result<Form<FormFields>, FormRejection>,
) -> Result<FormFields, PageError> {
    let rejected = |rejection: FormRejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            let message = "The form is larger than any of a page of this daemon.";
            PageError::Refused(ErrorKind::PayloadTooLarge, message.to_owned())
        }
        _ => {
            let message = "This address takes what the form of its page sends: \
                           `Content-Type: application/x-www-form-urlencoded`.";
            PageError::Refused(ErrorKind::MalformedRequest, message.to_owned())
        }
    };
    sent.map(|Form(fields)| fields).map_err(rejected)
}

/// A redirect to another page, after a form.
pub(super) fn redirect(address: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, address.to_owned())]).into_response()
}
