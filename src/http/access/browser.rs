//! Rejects requests that a web page makes a browser send.
//!
//! Where the connection itself authorizes a request (an open address on loopback, a client certificate),
//! every page that a browser shows could use it: by a request across sites, or by a name of its own that
//! resolves to this machine (DNS rebinding). Other clients send none of the headers that are checked here.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::OnceLock;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};

use crate::http::error::ApiError;

/// The hosts that requests may name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedHosts(BTreeSet<Host>);

/// A name or an address, as in the header `Host`, without the port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// A name, in lower case and without the dot at its end.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// A text is not the name or address of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host such as `clade.example.com` or `192.0.2.7`, without scheme and port")]
pub struct HostError(String);

impl FromStr for Host {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        if let Some(address) = address(text) {
            return Ok(Self::Address(address));
        }
        let name = bare_name(text).to_ascii_lowercase();
        let fits = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'.' | b'_');
        if name.is_empty() || !name.bytes().all(fits) {
            return Err(HostError(text.to_owned()));
        }
        Ok(Self::Name(name))
    }
}

impl Host {
    fn is_named(&self, name: &str) -> bool {
        matches!(self, Self::Name(own) if own.eq_ignore_ascii_case(bare_name(name)))
    }
}

/// Returns the address that a text is, with or without brackets.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(text);
    bare.parse::<IpAddr>().ok().map(|it| it.to_canonical())
}

/// Returns a name without the dot at its end.
fn bare_name(text: &str) -> &str {
    text.strip_suffix('.').unwrap_or(text)
}

impl AllowedHosts {
    /// Returns these hosts, and those that always mean this machine.
    pub fn new(hosts: impl IntoIterator<Item = Host>) -> Self {
        let own = Host::Name("localhost".to_owned());
        Self(hosts.into_iter().chain([own]).collect())
    }

    fn has(&self, authority: &str) -> bool {
        let Ok(authority) = authority.parse::<Authority>() else { return false };
        let named = authority.host();
        match address(named) {
            Some(address) => address.is_loopback() || self.0.contains(&Host::Address(address)),
            None => self.0.iter().any(|it| it.is_named(named)),
        }
    }
}

/// How many texts are remembered that name an allowed host, and how long they may be.
const REMEMBERED: (usize, usize) = (8, 256);

/// Checks the hosts that requests name.
#[derive(Debug, Default)]
pub(super) struct HostCheck {
    allowed: AllowedHosts,
    /// The first texts that named an allowed host: nearly all requests have one of them, and need not be parsed.
    known: [OnceLock<Box<[u8]>>; REMEMBERED.0],
}

impl HostCheck {
    pub(super) fn new(allowed: AllowedHosts) -> Self {
        Self { allowed, known: [const { OnceLock::new() }; REMEMBERED.0] }
    }

    /// Checks the hosts that a request names. A request without any is not from a browser.
    ///
    /// # Errors
    ///
    /// Returns 403 for a foreign host.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
        let of_uri = uri.authority().map(|it| it.as_str().as_bytes());
        let of_headers = headers.get_all(header::HOST).iter().map(HeaderValue::as_bytes);
        for named in of_uri.into_iter().chain(of_headers) {
            if !self.is_known(named) {
                self.check_host(named)?;
            }
        }
        Ok(())
    }

    fn is_known(&self, named: &[u8]) -> bool {
        self.known.iter().map_while(OnceLock::get).any(|it| **it == *named)
    }

    fn check_host(&self, named: &[u8]) -> Result<(), ApiError> {
        if !std::str::from_utf8(named).is_ok_and(|named| self.allowed.has(named)) {
            return Err(ApiError::foreign_host(&String::from_utf8_lossy(named)));
        }
        if named.len() <= REMEMBERED.1 {
            let mut named = Box::from(named);
            for place in &self.known {
                match place.set(named) {
                    Ok(()) => break,
                    Err(refused) => named = refused,
                }
            }
        }
        Ok(())
    }
}

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const DESTINATION: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The content types that a page can send to another site without a preflight request.
const FORMS: [&str; 3] = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];

/// Rejects requests that a page of another site makes a browser send. Links may be followed.
///
/// # Errors
///
/// Returns 403 for such a request.
pub(super) fn check_site(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    // Other clients send `Sec-Fetch-Mode`, too: `fetch` of Node.js.
    if !headers.contains_key(&SITE) && !headers.contains_key(header::ORIGIN) {
        return Ok(());
    }
    let reads = matches!(*method, Method::GET | Method::HEAD);
    let is_link = reads && is(headers, &MODE, "navigate") && is(headers, &DESTINATION, "document");
    if is_cross_site(uri, headers) && !is_link {
        return Err(ApiError::cross_site());
    }
    let kind =
        headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !reads && FORMS.iter().any(|form| kind.eq_ignore_ascii_case(form)) {
        return Err(ApiError::form(kind));
    }
    Ok(())
}

fn is(headers: &HeaderMap, name: &HeaderName, value: &str) -> bool {
    headers.get(name).is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(value.as_bytes()))
}

/// Returns whether a page of another origin sent a request: neither one of ours nor a person, such as by a bookmark.
fn is_cross_site(uri: &Uri, headers: &HeaderMap) -> bool {
    !is(headers, &SITE, "none") && !is_same_origin(uri, headers)
}

/// Returns whether a page of this origin sent a request, or a client that is not a browser. `Sec-Fetch-Site` says so
/// where a browser sends it; a reverse proxy may have changed `Host`, which the origin is compared with otherwise.
pub(crate) fn is_same_origin(uri: &Uri, headers: &HeaderMap) -> bool {
    if headers.contains_key(&SITE) {
        return is(headers, &SITE, "same-origin");
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let origin: Option<Uri> = origin.to_str().ok().and_then(|it| it.parse().ok());
    let Some((scheme, origin)) =
        origin.as_ref().and_then(|it| Some((it.scheme_str()?, it.authority()?)))
    else {
        // Such as `null`, the origin of a page in a sandbox.
        return false;
    };
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
    let named: Option<Authority> =
        uri.authority().cloned().or_else(|| host.and_then(|it| it.parse().ok()));
    let port = if scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
    named.is_some_and(|named| {
        named.host().eq_ignore_ascii_case(origin.host())
            && named.port_u16().unwrap_or(port) == origin.port_u16().unwrap_or(port)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    type Header = (&'static str, &'static str);

    fn headers(pairs: &[Header]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| (*name, *value));
        pairs.map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_the_hosts_of_this_machine_may_be_named() {
        let configured = ["clade.example.com", "192.0.2.7", "[2001:db8::7]"];
        let allowed = AllowedHosts::new(configured.map(|it| it.parse().unwrap()));
        let allowed = HostCheck::new(allowed);
        let rows = [
            ("localhost", true),
            ("LOCALHOST.:4433", true),
            ("127.0.0.1:4433", true),
            ("127.8.9.10", true),
            ("[::1]:4433", true),
            ("[::ffff:127.0.0.1]", true),
            ("clade.example.com:8080", true),
            ("Clade.Example.Com", true),
            ("192.0.2.7", true),
            ("[2001:db8::7]:1", true),
            ("192.0.2.8", false),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("evil-clade.example.com", false),
            ("2130706433", false),
            ("0.0.0.0:4433", false),
            ("localhost@evil.example", false),
            ("evil.example@localhost", true),
            ("", false),
        ];
        // The second time some are known.
        for (host, is_allowed) in [rows, rows].concat() {
            let found = allowed.check(&Uri::from_static("/"), &headers(&[("host", host)]));
            assert_eq!(found.is_ok(), is_allowed, "{host}");
        }
        assert!(
            rows.iter().all(|(host, is_allowed)| *is_allowed || !allowed.is_known(host.as_bytes()))
        );
        assert!(allowed.check(&Uri::from_static("/"), &HeaderMap::new()).is_ok());
        let localhost = headers(&[("host", "localhost")]);
        let absolute = Uri::from_static("http://evil.example/v1/groups");
        assert!(allowed.check(&absolute, &localhost).is_err());
        let two = headers(&[("host", "localhost"), ("host", "evil.example")]);
        assert!(allowed.check(&Uri::from_static("/"), &two).is_err());
    }

    const JSON: Header = ("content-type", "application/json");
    const FORM: Header = ("content-type", "application/x-www-form-urlencoded");
    const SAME_ORIGIN: Header = ("sec-fetch-site", "same-origin");
    const SAME_SITE: Header = ("sec-fetch-site", "same-site");
    const CROSS_SITE: Header = ("sec-fetch-site", "cross-site");
    const USER: Header = ("sec-fetch-site", "none");
    const NAVIGATE: Header = ("sec-fetch-mode", "navigate");
    const DOCUMENT: Header = ("sec-fetch-dest", "document");
    const OWN: Header = ("origin", "http://localhost:4433");

    /// Checks requests by their method and headers.
    fn check_requests(rows: &[(&str, &[Header], bool)]) {
        each_row(rows, |(method, pairs, is_allowed)| {
            let all = headers(&[pairs, &[("host", "localhost:4433")][..]].concat());
            let found = check_site(&method.parse().unwrap(), &Uri::from_static("/v1/groups"), &all);
            assert_eq!(found.is_ok(), *is_allowed, "{method} {pairs:?}");
        });
    }

    #[test]
    fn requests_of_other_clients_than_browsers_are_accepted() {
        let cors = ("sec-fetch-mode", "cors");
        check_requests(&[
            ("POST", &[FORM], true),
            ("POST", &[], true),
            ("GET", &[], true),
            ("POST", &[cors, ("content-type", "text/plain")], true),
        ]);
    }

    #[test]
    fn requests_that_a_browser_says_are_from_another_site_are_rejected() {
        check_requests(&[
            ("GET", &[SAME_ORIGIN], true),
            ("POST", &[SAME_ORIGIN, OWN, JSON], true),
            ("POST", &[SAME_ORIGIN, OWN], true),
            ("GET", &[USER], true),
            ("GET", &[CROSS_SITE], false),
            ("GET", &[SAME_SITE], false),
            ("POST", &[CROSS_SITE, JSON], false),
            ("DELETE", &[SAME_SITE], false),
            ("OPTIONS", &[CROSS_SITE], false),
        ]);
    }

    #[test]
    fn links_from_another_site_are_followed() {
        check_requests(&[
            ("GET", &[CROSS_SITE, NAVIGATE, DOCUMENT], true),
            ("GET", &[CROSS_SITE, NAVIGATE, ("sec-fetch-dest", "iframe")], false),
            ("POST", &[CROSS_SITE, NAVIGATE, DOCUMENT], false),
        ]);
    }

    #[test]
    fn requests_with_another_origin_are_rejected() {
        check_requests(&[
            ("POST", &[OWN, JSON], true),
            ("POST", &[("origin", "https://evil.example"), JSON], false),
            ("POST", &[("origin", "http://localhost:3000"), JSON], false),
            ("POST", &[("origin", "http://localhost"), JSON], false),
            ("POST", &[("origin", "null"), JSON], false),
            ("GET", &[("origin", "https://evil.example")], false),
        ]);
    }

    #[test]
    fn origins_are_compared_without_case_and_default_ports() {
        let host = |it| ("host", it);
        let origin = |it| ("origin", it);
        for (uri, pairs, expected) in [
            ("/", &[SAME_ORIGIN] as &[Header], true),
            ("/", &[SAME_SITE], false),
            ("/", &[CROSS_SITE, origin("http://h"), host("h")], false),
            // Not a page, so not a form of one.
            ("/", &[USER], false),
            ("/", &[host("h:1")], true),
            ("/", &[origin("http://h:1"), host("h:1")], true),
            ("/", &[origin("http://h:1"), host("h:2")], false),
            ("/", &[origin("http://h"), host("H:80")], true),
            ("/", &[origin("https://h"), host("h:443")], true),
            ("/", &[origin("https://h"), host("h:80")], false),
            ("/", &[origin("https://h:443"), host("h")], true),
            ("/", &[origin("http://evil"), host("h:1")], false),
            ("/", &[origin("null"), host("h:1")], false),
            ("/", &[origin("http://h")], false),
            // An address can have the host, which counts then.
            ("http://h/", &[origin("http://h")], true),
            ("http://h/", &[origin("http://evil")], false),
        ] {
            assert_eq!(
                is_same_origin(&uri.parse().unwrap(), &headers(pairs)),
                expected,
                "{pairs:?}"
            );
        }
    }

    #[test]
    fn forms_of_browsers_are_rejected() {
        check_requests(&[
            ("POST", &[OWN, FORM], false),
            ("POST", &[SAME_ORIGIN, ("content-type", "Text/Plain; charset=utf-8")], false),
            ("POST", &[USER, ("content-type", "multipart/form-data; boundary=x")], false),
            ("GET", &[USER, FORM], true),
        ]);
    }
}
