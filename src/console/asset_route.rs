//! Answers with the files of pages.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse as _, Response};

use super::context::{Console, refusal};
use super::page::takes_gzip;
use crate::http::types::ErrorKind;

/// Answers with a file, which no browser has to ask for again.
pub(super) async fn show(
    State(console): State<Arc<Console>>,
    Path(name): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let Some(asset) = console.assets.find(&name) else {
        let message = "The resource could not be found.";
        return refusal(ErrorKind::NotFound, message, uri.path());
    };
    let fixed = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.kind)),
        (header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
    ];
    if takes_gzip(&headers) {
        let encoding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
        return (fixed, encoding, asset.compressed.clone()).into_response();
    }
    (fixed, asset.content).into_response()
}
