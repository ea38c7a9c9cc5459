//! The token in a URL: `?token=…`, as Puppet Enterprise documents it.

use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{Extensions, Request};

/// A token from the URL. It is never logged.
#[derive(Clone)]
pub(super) struct QueryToken(Vec<u8>);

impl std::fmt::Debug for QueryToken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("QueryToken(…)")
    }
}

impl QueryToken {
    pub(super) fn of(extensions: &Extensions) -> Option<&[u8]> {
        extensions.get::<Self>().map(|it| it.0.as_slice())
    }
}

/// Moves the token of a URL to an extension that only authentication reads, before a route, a log or an
/// error sees the URL.
pub(in crate::http) fn take_query_token<B>(request: &mut Request<B>) {
    let Some(query) = request.uri().query() else { return };
    let Some((token, rest)) = split(query) else { return };
    let path = request.uri().path();
    let target = if rest.is_empty() { path.to_owned() } else { format!("{path}?{rest}") };
    let mut parts = request.uri().clone().into_parts();
    // The rest of a valid URI is valid; if it were not, the path alone has no token in it.
    parts.path_and_query =
        PathAndQuery::try_from(target).or_else(|_| PathAndQuery::try_from(path)).ok();
    *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    request.extensions_mut().insert(QueryToken(token));
}

/// Returns the first token of a query, and the query without tokens.
fn split(query: &str) -> Option<(Vec<u8>, String)> {
    let mut token = None;
    let mut rest = Vec::new();
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decoded(key) == b"token" {
            token.get_or_insert_with(|| decoded(value));
        } else {
            rest.push(pair);
        }
    }
    token.map(|token| (token, rest.join("&")))
}

fn decoded(text: &str) -> Vec<u8> {
    let text = text.replace('+', " ");
    percent_encoding::percent_decode_str(&text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_keeps_everything_but_the_token() {
        for (before, token, after) in [
            ("/v1/groups?token=abc", Some("abc"), "/v1/groups"),
            (
                "/v1/groups?limit=1&token=a%2Bb&offset=%32",
                Some("a+b"),
                "/v1/groups?limit=1&offset=%32",
            ),
            ("/v1/groups?%74oken=abc&x", Some("abc"), "/v1/groups?x"),
            ("/v1/groups?token=a&token=b", Some("a"), "/v1/groups"),
            ("/v1/groups?token", Some(""), "/v1/groups"),
            ("http://clade/v1/groups?token=abc", Some("abc"), "http://clade/v1/groups"),
            ("/v1/groups?tokens=abc", None, "/v1/groups?tokens=abc"),
            ("/v1/groups", None, "/v1/groups"),
        ] {
            let mut request = Request::builder().uri(before).body(()).unwrap();
            take_query_token(&mut request);
            assert_eq!(request.uri().to_string(), after, "{before}");
            let found = QueryToken::of(request.extensions());
            assert_eq!(found, token.map(str::as_bytes), "{before}");
        }
    }

    #[test]
    fn a_token_is_not_shown_by_its_debug_form() {
        assert_eq!(format!("{:?}", QueryToken(b"secret".to_vec())), "QueryToken(…)");
    }
}
