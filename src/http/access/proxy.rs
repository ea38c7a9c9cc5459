//! Users whom a proxy authenticates, and names in a header.
//!
//! The header counts only if the other end of the connection has an address of the trusted networks; from anywhere else
//! it is ignored. Headers such as `X-Forwarded-For`, which any client can send, are never read. The unix socket has no
//! address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use axum::http::{HeaderMap, HeaderName};
use ipnet::{IpNet, Ipv4Net};

use super::ignored_headers::IgnoredHeaders;

/// The most bytes of a user's name.
const LONGEST: usize = 1024;

/// Headers with a meaning of their own: for the daemon, for HTTP, or those by which proxies name addresses. Clients
/// send them, and proxies add to what clients sent.
const RESERVED: [&str; 33] = [
    "cache-control",
    "cf-connecting-ip",
    "connection",
    "cookie",
    "date",
    "dnt",
    "early-data",
    "expect",
    "forwarded",
    "from",
    "host",
    "keep-alive",
    "max-forwards",
    "origin",
    "pragma",
    "priority",
    "range",
    "referer",
    "save-data",
    "te",
    "trailer",
    "true-client-ip",
    "user-agent",
    "via",
    "warning",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-event-key",
    "x-http-method-override",
    "x-real-ip",
    "x-requested-with",
    "x-scheme",
    "x-url-scheme",
];

/// What the names of more such headers begin with.
const RESERVED_FAMILIES: [&str; 24] = [
    // Credentials that the daemon checks itself, `proxy-authorization` among them.
    "authorization",
    "accept",
    "access-control-",
    "content-",
    "if-",
    "transfer-encoding",
    "upgrade",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-scheme",
    "x-forwarded-server",
    "x-forwarded-ssl",
    "proxy-",
    "x-authentication",
    "x-clade-",
    "x-request-id",
    "sec-",
    "webhook-",
    "x-hub-signature",
    "x-git",
    "idempotency-key",
];

/// The header by which a proxy names the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyHeader(HeaderName);

/// A text is not the name of a header that can name users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyHeaderError {
    /// It is not the name of a header.
    #[error("`{0}` is not the name of a header such as `X-Forwarded-User`")]
    Malformed(String),
    /// It has a meaning already.
    #[error(
        "`{0}` has another meaning: choose a header of the proxy alone, such as `X-Forwarded-User`"
    )]
    Reserved(String),
}

impl FromStr for ProxyHeader {
    type Err = ProxyHeaderError;

    fn from_str(text: &str) -> Result<Self, ProxyHeaderError> {
        let malformed = |_| ProxyHeaderError::Malformed(text.to_owned());
        let name: HeaderName = text.parse().map_err(malformed)?;
        let is_of_family = RESERVED_FAMILIES.iter().any(|it| name.as_str().starts_with(it));
        if is_of_family || RESERVED.contains(&name.as_str()) {
            return Err(ProxyHeaderError::Reserved(text.to_owned()));
        }
        Ok(Self(name))
    }
}

/// Addresses that the proxy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustedNetwork(IpNet);

/// A text does not name addresses that can be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustedNetworkError {
    /// It does not name addresses.
    #[error("`{0}` is not an address or network such as `192.0.2.7` or `10.1.0.0/24`")]
    Malformed(String),
    /// The address has bits beyond the prefix.
    #[error(
        "`{0}` names an address in a network: write `{1}` for the network, or the address alone"
    )]
    HostBits(String, IpNet),
    /// It is every address.
    #[error("`{0}` is every address: any client could claim any name")]
    Everything(String),
}

impl FromStr for TrustedNetwork {
    type Err = TrustedNetworkError;

    fn from_str(text: &str) -> Result<Self, TrustedNetworkError> {
        let malformed = || TrustedNetworkError::Malformed(text.to_owned());
        let net: IpNet = match text.parse::<IpAddr>() {
            Ok(address) => address.into(),
            Err(_) => text.parse().map_err(|_| malformed())?,
        };
        if net.trunc() != net {
            return Err(TrustedNetworkError::HostBits(text.to_owned(), net.trunc()));
        }
        if net.prefix_len() == 0 {
            return Err(TrustedNetworkError::Everything(text.to_owned()));
        }
        // IPv4 addresses of connections are compared in their own form.
        let own = match (net.addr().to_canonical(), net.prefix_len().checked_sub(96)) {
            (IpAddr::V4(address), Some(prefix)) if net.addr().is_ipv6() => {
                Ipv4Net::new(address, prefix).map(IpNet::V4).map_err(|_| malformed())?
            }
            _ => net,
        };
        if own.prefix_len() == 0 {
            return Err(TrustedNetworkError::Everything(text.to_owned()));
        }
        Ok(Self(own))
    }
}

/// The name of a user, of a proxy's choice: text that logs, the journal and commits can show.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct UserName(Arc<str>);

impl fmt::Debug for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl UserName {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a header does not name one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::http) enum UserNameError {
    #[error("it is there more than once")]
    Repeated,
    #[error("it is empty")]
    Empty,
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    #[error("it is not text in UTF-8 without control characters")]
    NotText,
    // Who may choose a name at the proxy could choose one that looks like that of another user.
    #[error("it begins or ends with white space other than spaces")]
    Padded,
}

impl FromStr for UserName {
    type Err = UserNameError;

    fn from_str(text: &str) -> Result<Self, UserNameError> {
        match text.trim_matches([' ', '\t']) {
            "" => Err(UserNameError::Empty),
            name if name.len() > LONGEST => Err(UserNameError::TooLong),
            name if name.chars().any(char::is_control) => Err(UserNameError::NotText),
            name if name.trim() != name => Err(UserNameError::Padded),
            name => Ok(Self(name.into())),
        }
    }
}

/// What the header of a request says of its user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ProxyClaim {
    /// There is no header.
    #[default]
    Absent,
    /// The header comes from an address that is not the proxy's.
    Ignored,
    /// The proxy names a user.
    User(UserName),
}

/// A proxy that authenticates users.
#[derive(Debug)]
pub(super) struct TrustedProxy {
    header: ProxyHeader,
    networks: Vec<TrustedNetwork>,
    ignored: IgnoredHeaders,
}

impl TrustedProxy {
    pub(super) fn new(header: ProxyHeader, networks: Vec<TrustedNetwork>) -> Self {
        Self { header, networks, ignored: IgnoredHeaders::default() }
    }

    pub(super) fn header(&self) -> &HeaderName {
        &self.header.0
    }

    /// Reads the header: it counts if the request comes from the proxy.
    ///
    /// # Errors
    ///
    /// Returns an error if the proxy sends the header and does not name one user.
    pub(super) fn claim(
        &self,
        headers: &HeaderMap,
        address: Option<IpAddr>,
    ) -> Result<ProxyClaim, UserNameError> {
        let mut values = headers.get_all(&self.header.0).iter();
        let Some(value) = values.next() else { return Ok(ProxyClaim::Absent) };
        let address = address.map(|it| it.to_canonical());
        if !address.is_some_and(|address| self.networks.iter().any(|it| it.0.contains(&address))) {
            self.log_ignored(address);
            return Ok(ProxyClaim::Ignored);
        }
        if values.next().is_some() {
            return Err(UserNameError::Repeated);
        }
        let text = std::str::from_utf8(value.as_bytes()).map_err(|_| UserNameError::NotText)?;
        text.parse().map(ProxyClaim::User)
    }

    #[expect(clippy::disallowed_methods, reason = "each address is logged once an hour")]
    fn log_ignored(&self, address: Option<IpAddr>) {
        let Some(address) = address else { return };
        if self.ignored.note(address, Instant::now()) {
            let header = self.header();
            tracing::warn!(
                %header,
                %address,
                "the header `{header}` came from {address}, which is not in --proxy-auth-from: it is ignored; \
                 if that is your proxy, add its address"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    const HEADER: HeaderName = HeaderName::from_static("x-user");

    /// The values of the header, and the user whom they name.
    type NamedBy<'a> = (&'a [&'a [u8]], Result<Option<&'a str>, UserNameError>);

    fn proxy(networks: &[&str]) -> TrustedProxy {
        let networks = networks.iter().map(|it| it.parse().unwrap()).collect();
        TrustedProxy::new("X-User".parse().unwrap(), networks)
    }

    fn named(values: &[&[u8]]) -> HeaderMap {
        let value = |it: &&[u8]| (HEADER, axum::http::HeaderValue::from_bytes(it).unwrap());
        values.iter().map(value).collect()
    }

    #[test]
    fn only_the_proxy_names_users() {
        let proxy =
            proxy(&["192.0.2.7", "10.1.0.0/24", "2001:db8::/64", "::ffff:198.51.100.0/120"]);
        let headers = named(&[b"ada"]);
        let rows = [
            (Some("192.0.2.7"), true),
            (Some("192.0.2.8"), false),
            (Some("::ffff:192.0.2.7"), true),
            (Some("10.1.0.255"), true),
            (Some("10.1.1.0"), false),
            (Some("2001:db8::1"), true),
            (Some("2001:db8:0:1::1"), false),
            (Some("198.51.100.9"), true),
            (Some("127.0.0.1"), false),
            (None, false),
        ];
        each_row(rows, |(address, is_named)| {
            let address = address.map(|it| it.parse().unwrap());
            let claim = proxy.claim(&headers, address).unwrap();
            assert_eq!(matches!(claim, ProxyClaim::User(_)), is_named);
            assert_eq!(claim == ProxyClaim::Ignored, !is_named);
        });
    }

    #[test]
    fn a_header_names_one_user_or_is_refused() {
        let proxy = proxy(&["192.0.2.7"]);
        let (long, longest) = ([b'a'; LONGEST + 1], [b'a'; LONGEST]);
        let rows: [NamedBy<'_>; 14] = [
            (&[], Ok(None)),
            (&[b"ada@example.com"], Ok(Some("ada@example.com"))),
            (&[b" ada "], Ok(Some("ada"))),
            (&["Ångström".as_bytes()], Ok(Some("Ångström"))),
            (&[&longest], Ok(Some(std::str::from_utf8(&longest).unwrap()))),
            (&[b"ada", b"ada"], Err(UserNameError::Repeated)),
            (&[b"ada", b""], Err(UserNameError::Repeated)),
            (&[b""], Err(UserNameError::Empty)),
            (&[b" "], Err(UserNameError::Empty)),
            (&[&long], Err(UserNameError::TooLong)),
            (&[b"a\xffa"], Err(UserNameError::NotText)),
            (&["ada\u{a0}".as_bytes()], Err(UserNameError::Padded)),
            (&["\u{3000} ada".as_bytes()], Err(UserNameError::Padded)),
            (&["ada \u{2028}\t".as_bytes()], Err(UserNameError::Padded)),
        ];
        each_row(rows, |(values, expected)| {
            let claim = |address: &str| proxy.claim(&named(values), Some(address.parse().unwrap()));
            let found = claim("192.0.2.7");
            let found = found.as_ref().map(|it| match it {
                ProxyClaim::User(user) => Some(user.as_str()),
                ProxyClaim::Absent | ProxyClaim::Ignored => None,
            });
            assert_eq!(found, expected.as_ref().copied());
            // From elsewhere it is ignored, whatever it says.
            let ignored = if values.is_empty() { ProxyClaim::Absent } else { ProxyClaim::Ignored };
            assert_eq!(claim("192.0.2.8"), Ok(ignored));
        });
        assert_eq!("a\u{85}b".parse::<UserName>(), Err(UserNameError::NotText));
    }

    #[test]
    fn headers_with_another_meaning_do_not_name_users() {
        let rows = [
            ("X-Forwarded-User", true),
            ("X-Forwarded-Email", true),
            ("Remote-User", true),
            ("x-auth-request-email", true),
            ("Authorization", false),
            ("Proxy-Authorization", false),
            ("X-Authentication", false),
            ("Cookie", false),
            ("HOST", false),
            ("Origin", false),
            ("X-Forwarded-For", false),
            ("X-Forwarded-Scheme", false),
            ("CF-Connecting-IP", false),
            ("Accept-Language", false),
            ("If-None-Match", false),
            ("Via", false),
            ("X-Forwarded-Subject", true),
            ("X-Real-IP", false),
            ("Sec-Fetch-Site", false),
            ("X-Clade-Commit", false),
            ("X-Request-Id", false),
            ("X-Hub-Signature-256", false),
            ("X-Gitlab-Token", false),
            ("Content-Length", false),
            ("", false),
            ("a b", false),
        ];
        each_row(rows, |(text, fits)| {
            assert_eq!(text.parse::<ProxyHeader>().is_ok(), fits);
        });
    }

    #[test]
    fn networks_say_what_they_are() {
        let rows = [
            ("192.0.2.7", Ok("192.0.2.7/32")),
            ("10.0.0.0/8", Ok("10.0.0.0/8")),
            ("::1", Ok("::1/128")),
            ("::ffff:10.0.0.0/104", Ok("10.0.0.0/8")),
            ("10.0.0.7/8", Err("write `10.0.0.0/8`")),
            ("0.0.0.0/0", Err("every address")),
            ("::/0", Err("every address")),
            ("::ffff:0.0.0.0/96", Err("every address")),
            ("10.0.0.0/33", Err("is not an address")),
            ("proxy.example.com", Err("is not an address")),
            ("", Err("is not an address")),
        ];
        each_row(rows, |(text, expected)| {
            let found = text.parse::<TrustedNetwork>();
            match expected {
                Ok(shown) => assert_eq!(found.unwrap().0.to_string(), shown),
                Err(part) => assert!(found.unwrap_err().to_string().contains(part)),
            }
        });
    }
}
