//! Answers with the files of pages.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::context::Console;
use super::page::takes_gzip;

/// Answers with a file, which no browser has to ask for again.
pub(super) async fn show(
    State(console): State<Arc<Console>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let Some(asset) = console.assets.find(&name) else {
        return StatusCode::NOT_FOUND.into_response();
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
