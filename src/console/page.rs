//! The answer that is a page: its headers and its encoding.

use std::io::Write as _;

use askama::Template;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use flate2::Compression;
use flate2::write::GzEncoder;

/// What a page may load and do: only what this daemon has.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Pages from this size on are compressed.
const WORTH_COMPRESSING: usize = 1024;

/// Writes a page.
pub(super) fn write(status: StatusCode, page: &impl Template, request: &HeaderMap) -> Response {
    let Ok(text) = page.render() else {
        tracing::error!("a page cannot be written");
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let fixed = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        (header::VARY, HeaderValue::from_static("accept, accept-encoding, cookie")),
    ];
    if text.len() >= WORTH_COMPRESSING && takes_gzip(request) {
        let encoding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
        return (status, fixed, encoding, compressed(text.as_bytes())).into_response();
    }
    (status, fixed, text).into_response()
}

/// Returns whether a client reads gzip.
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut codings = accepted.filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(','));
    codings.any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|it| it.eq_ignore_ascii_case("gzip"));
        is_gzip && !parts.any(|it| matches!(it, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

/// Compresses a text.
pub(super) fn compressed(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(4));
    // Memory takes all that is written.
    let _written = encoder.write_all(text);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_say_whether_they_read_gzip() {
        for (value, expected) in [
            ("gzip", true),
            ("gzip, deflate, br, zstd", true),
            ("br;q=1.0, GZIP;q=0.8", true),
            ("gzip;q=0", false),
            ("identity", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, value.parse().unwrap());
            assert_eq!(takes_gzip(&headers), expected, "{value}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
