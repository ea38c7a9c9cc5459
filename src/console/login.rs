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
use super::entrance::Entrance;
use super::layout::PageFrame;
use super::markup as m;
use super::page;
use super::session::{cookie, is_own_form, no_cookie};
use crate::http::takes_pages;
use crate::http::types::ErrorKind;

#[derive(Debug, Template)]
#[template(path = "login.html")]
struct Login {
    layout: PageFrame,
    takes_tokens: bool,
    next: String,
    /// Why the last try failed.
    failure: &'static str,
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
    form(&entrance, StatusCode::OK, next, "")
}

fn form(entrance: &Entrance, status: StatusCode, next: String, failure: &'static str) -> Response {
    let mut layout = entrance.layout();
    layout.form_token = entrance.form_token();
    let takes_tokens = entrance.console.api.takes_tokens();
    page::write(status, &Login { layout, takes_tokens, next, failure }, &entrance.headers)
}

/// Shows the form again, and why; programs read the error.
fn refused(entrance: &Entrance, kind: ErrorKind, next: String, failure: &'static str) -> Response {
    if takes_pages(&entrance.headers) {
        form(entrance, kind.status(), next, failure)
    } else {
        entrance.fail(PageError::Refused(kind, failure.to_owned()))
    }
}

/// Opens a session for a token.
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
    let next = field("next").to_owned();
    if !is_own_form(&entrance.headers) || !entrance.accepts_form(field("form_token")) {
        let failure = "The form is not one of this page; load it again.";
        return refused(&entrance, ErrorKind::PermissionDenied, next, failure);
    }
    let token = field("token");
    let asker = entrance.asker.clone().with_token(token);
    let known = !token.is_empty()
        && token.bytes().all(|it| it.is_ascii_graphic())
        && console.api.takes_tokens()
        && console.api.identify(&asker, &Method::GET).is_ok_and(|it| it.reads);
    if !known {
        let failure = "The token is not known, or does not have the role `read`.";
        return refused(&entrance, ErrorKind::UserUnauthenticated, next, failure);
    }
    match console.sessions.open(token.to_owned()) {
        Ok(id) => {
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
    let sent = fields.get("form_token").map(String::as_str).unwrap_or_default();
    if !is_own_form(&entrance.headers) || !entrance.accepts_form(sent) {
        let failure = "The form is not one of this page; load it again.";
        return refused(&entrance, ErrorKind::PermissionDenied, String::new(), failure);
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

/// Returns the page to go on with: one of this daemon, whatever the address says.
fn own_path(next: &str) -> &str {
    let is_own = next.starts_with('/')
        && !next.starts_with("//")
        && next.bytes().all(|it| it.is_ascii_graphic() && it != b'\\');
    if is_own { next } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_leads_to_pages_of_this_daemon_alone() {
        for (next, expected) in [
            ("/nodes?q=x", "/nodes?q=x"),
            ("", "/"),
            ("//evil.example", "/"),
            ("/\\evil.example", "/"),
            ("https://evil.example", "/"),
            ("/a\r\nSet-Cookie: x", "/"),
        ] {
            assert_eq!(own_path(next), expected, "{next}");
        }
    }
}
