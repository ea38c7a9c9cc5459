//! What all pages share: the API that they ask, assets, sessions, and how errors are shown.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use tokio::sync::OnceCell;

use super::asset::Assets;
use super::base_path::BasePath;
use super::failure::{ErrorPage, help};
use super::gone_pins::PinMemory;
use super::layout::{Links, PageFrame, Section, SessionState};
use super::page;
use super::session::{Sessions, Transport};
use crate::forge::ForgePages;
use crate::http::types::Error;
use crate::http::{InProcessApi, InProcessError};

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
    Refused(StatusCode, String),
}

impl PageError {
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

/// Writes an error as a page.
pub(super) fn failed(
    layout: PageFrame,
    trouble: PageError,
    request_id: String,
    headers: &HeaderMap,
) -> Response {
    let (status, kind, message) = match trouble {
        PageError::Api(InProcessError { status, error }) => {
            let Error { kind, msg, .. } = *error;
            (status, kind.into_owned(), msg)
        }
        PageError::NotFound(message) => (StatusCode::NOT_FOUND, "not-found".to_owned(), message),
        PageError::Refused(status, message) => (status, "refused".to_owned(), message),
    };
    let page = ErrorPage { layout, status, kind, message, help: help(status), request_id };
    page::write(status, &page, headers)
}

/// A redirect to another page, after a form.
pub(super) fn redirect(address: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, address.to_owned())]).into_response()
}
