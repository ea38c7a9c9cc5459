//! Signing in with a token, and out.

use std::sync::Arc;

use askama::Template;
use axum::Form;
use axum::extract::rejection::FormRejection;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::context::{Console, FormFields, PageError, read_form, redirect};
use super::entrance::{Entrance, NOT_TAKEN};
use super::layout::{PageFrame, SessionState, own_path};
use super::markup as m;
use super::page;
use super::session::{cookie, no_cookie};
use crate::http::types::ErrorKind;
use crate::http::{LoginWays, takes_pages};

#[derive(Debug, Template)]
#[template(path = "login.html")]
struct Login {
    layout: PageFrame,
    ways: LoginWays,
    /// Whether callers need nothing to read.
    is_open: bool,
    next: String,
    /// Whether an action led here, which was not taken.
    not_taken: bool,
    /// Why the last try failed.
    failure: String,
}

/// A request that needs no rights.
#[derive(Debug)]
pub(super) struct Stranger(Entrance);

impl FromRequestParts<Arc<Console>> for Stranger {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        console: &Arc<Console>,
    ) -> Result<Self, Response> {
        Ok(Self(Entrance::of(parts, console)))
    }
}

/// Shows the form.
pub(super) async fn show(Stranger(entrance): Stranger) -> Response {
    let next = entrance.parameters.get("next").cloned().unwrap_or_default();
    let fault = entrance.fault.as_ref().map(|it| PageError::Api(it.clone()));
    let status = fault.as_ref().map_or(StatusCode::OK, PageError::status);
    let failure = fault.map(PageError::message).unwrap_or_default();
    form(&entrance, status, next, failure)
}

fn form(entrance: &Entrance, status: StatusCode, next: String, failure: String) -> Response {
    let mut layout = entrance.layout();
    if layout.session == SessionState::SignedOut {
        // The link would lead to this page.
        layout.session = SessionState::None;
    }
    let ways = entrance.console.api.login_ways(&entrance.asker);
    let is_open = ways == LoginWays::default();
    let not_taken = entrance.parameters.contains_key(NOT_TAKEN);
    page::write(
        status,
        &Login { layout, ways, is_open, next, not_taken, failure },
        &entrance.headers,
    )
}

/// Shows the form again, and why; programs read the error.
fn refused(entrance: &Entrance, trouble: PageError, next: String) -> Response {
    if takes_pages(&entrance.headers) {
        form(entrance, trouble.status(), next, trouble.message())
    } else {
        entrance.fail(trouble)
    }
}

/// Checks that a form is from a page that the visitor got. A faulty header of a proxy can be why it is not.
fn check_form(entrance: &Entrance, fields: &FormFields) -> Result<(), PageError> {
    let sent = fields.get("form_token").map(|it| it.trim()).unwrap_or_default();
    entrance.check_form(sent).map_err(|foreign| match &entrance.fault {
        Some(fault) => PageError::Api(fault.clone()),
        None => foreign.into(),
    })
}

/// Checks that the API takes a token, and shows its visitor what the pages show.
fn check_token(entrance: &Entrance, token: &str) -> Result<(), PageError> {
    let api = &entrance.console.api;
    let is_text = !token.is_empty() && token.bytes().all(|it| it.is_ascii_graphic());
    if !is_text || !api.knows_token(token) {
        let message = "The token is not known to this daemon.";
        return Err(PageError::Refused(ErrorKind::UserUnauthenticated, message.to_owned()));
    }
    let rights = api.identify(&entrance.asker.clone().with_token(token), &Method::GET)?;
    if !rights.reads {
        let message = "The token does not have the role `read`, which the pages need.";
        return Err(PageError::Refused(ErrorKind::PermissionDenied, message.to_owned()));
    }
    Ok(())
}

/// Opens a session for a token, in the place of the one that the visitor has.
pub(super) async fn sign_in(
    State(console): State<Arc<Console>>,
    Stranger(entrance): Stranger,
    fields: Result<Form<FormFields>, FormRejection>,
) -> Response {
    let fields = match read_form(fields) {
        Ok(fields) => fields,
        Err(trouble) => return entrance.fail(trouble),
    };
    let field = |name: &str| fields.get(name).map(|it| it.trim()).unwrap_or_default();
    let (token, next) = (field("token"), field("next").to_owned());
    let checked = check_form(&entrance, &fields).and_then(|()| check_token(&entrance, token));
    if let Err(trouble) = checked {
        return refused(&entrance, trouble, next);
    }
    match console.sessions.open(token.to_owned()) {
        Ok(id) => {
            console.sessions.close(&entrance.headers);
            let cookie = cookie(&id, &console.base_path, entrance.transport());
            let address = format!("{}{}", console.base_path.as_str(), own_path(&next));
            with_cookie(redirect(&address), &cookie)
        }
        Err(error) => {
            tracing::error!(%error, "no session can be opened");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Ends the session.
pub(super) async fn sign_out(
    State(console): State<Arc<Console>>,
    Stranger(entrance): Stranger,
    fields: Result<Form<FormFields>, FormRejection>,
) -> Response {
    let fields = match read_form(fields) {
        Ok(fields) => fields,
        Err(trouble) => return entrance.fail(trouble),
    };
    // A page can be older than the end of its session: there is nothing left to protect then.
    let has_ended = entrance.session == SessionState::SignedOut && entrance.fault.is_none();
    if !has_ended && let Err(trouble) = check_form(&entrance, &fields) {
        return refused(&entrance, trouble, String::new());
    }
    console.sessions.close(&entrance.headers);
    let address = format!("{}/login", console.base_path.as_str());
    with_cookie(redirect(&address), &no_cookie(&console.base_path))
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, value);
    }
    response
}
