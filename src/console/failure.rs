//! Errors as pages.

use askama::Template;
use axum::http::StatusCode;

use super::layout::PageFrame;
use super::markup as m;
use super::state as s;
use crate::http::types::Condition;

/// An error in place of a page.
#[derive(Debug, Template)]
#[template(path = "failure.html")]
pub(super) struct ErrorPage {
    pub(super) layout: PageFrame,
    pub(super) status: StatusCode,
    pub(super) kind: String,
    pub(super) message: String,
    /// What to do.
    pub(super) help: &'static str,
    pub(super) request_id: String,
    /// What is wrong with the daemon, which may be why.
    pub(super) conditions: Vec<Condition>,
}

impl ErrorPage {
    pub(super) fn title(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or("Error")
    }
}

/// Says what to do about an error.
pub(super) fn help(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => {
            "Search for the node by a part of its certname, or look through the groups."
        }
        StatusCode::UNAUTHORIZED => {
            "Ask an operator of the daemon, or of the proxy in front of it, which way to sign in is yours."
        }
        StatusCode::FORBIDDEN => {
            "Ask an operator of the daemon for the role that the message names."
        }
        StatusCode::SERVICE_UNAVAILABLE => "Wait a moment and load the page again.",
        status if status.is_server_error() => {
            "Load the page again; if the error stays, give the request id to an operator of the daemon, who finds it in the log."
        }
        _ => "Check the address.",
    }
}
