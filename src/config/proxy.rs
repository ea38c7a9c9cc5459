//! The proxy that the environment names for a URL, chosen as curl and git do.
//!
//! `https` uses `https_proxy` or `HTTPS_PROXY`, `http` only `http_proxy`, since `HTTP_PROXY` may be a header of a request
//! that a CGI program answers; both then use `all_proxy` or `ALL_PROXY`. An empty variable counts as none.

use std::ffi::OsString;
use std::net::IpAddr;

use ipnet::IpNet;
use ureq::Proxy;
use ureq::http::Uri;

use super::address::has_misplaced_at;

/// Variables, the first of which that is set counts.
type Candidates = &'static [&'static str];

const OF_HTTPS: Candidates = &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
const OF_HTTP: Candidates = &["http_proxy", "all_proxy", "ALL_PROXY"];
const EXEMPT: Candidates = &["no_proxy", "NO_PROXY"];

/// Why a text names no proxy that can be used, as the end of a sentence about it. It may hold a password, and is not
/// repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyFault {
    /// It is not the URL of one.
    #[error("is not a URL such as `http://proxy.example.com:3128`")]
    Malformed,
    /// It speaks SOCKS.
    #[error("is a SOCKS proxy, and only proxies of `http` and `https` are supported")]
    Socks,
}

/// A variable of the environment names no proxy that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the proxy in the variable `{variable}` {fault}")]
pub struct ProxyVariableError {
    variable: &'static str,
    fault: ProxyFault,
}

/// Returns the proxy at a URL; a host and port alone are one of `http`.
///
/// # Errors
///
/// Returns an error if it is not the URL of a proxy that can be used.
pub fn parse_proxy(text: &str) -> Result<Proxy, ProxyFault> {
    // The library would take the text before that for the host, and look up a part of the password.
    if has_misplaced_at(text) {
        return Err(ProxyFault::Malformed);
    }
    let proxy = Proxy::new(text).map_err(|_| ProxyFault::Malformed)?;
    let authority = proxy.uri().authority().map_or("", |it| it.as_str());
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let has_port = proxy.uri().port_u16().is_some();
    // The library takes the usual port for one that is not a number of 16 bits.
    if proxy.host().is_empty() || (!has_port && place != proxy.host()) {
        return Err(ProxyFault::Malformed);
    }
    if proxy.uri().scheme_str().is_some_and(|it| it.to_ascii_lowercase().starts_with("socks")) {
        return Err(ProxyFault::Socks);
    }
    Ok(proxy)
}

/// Returns the proxy that the environment names for a URL of `http` or `https`. This machine is always reached directly: a
/// proxy would reach itself, and see what is not encrypted because it stays here.
///
/// # Errors
///
/// Returns an error if the variable that counts names no proxy that can be used.
pub fn proxy_of_environment(url: &str) -> Result<Option<Proxy>, ProxyVariableError> {
    choose(url, &|name| std::env::var_os(name))
}

fn choose(
    url: &str,
    lookup: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<Proxy>, ProxyVariableError> {
    // What is not a URL is refused where it is used.
    let Ok(url) = url.parse::<Uri>() else { return Ok(None) };
    let Some(host) = url.host() else { return Ok(None) };
    let first = |names: Candidates| {
        let set = names.iter().map(|name| (*name, lookup(name).unwrap_or_default()));
        set.into_iter().find(|(_, value)| !value.is_empty())
    };
    let candidates = if url.scheme_str() == Some("http") { OF_HTTP } else { OF_HTTPS };
    let Some((variable, value)) = first(candidates) else { return Ok(None) };
    let exempt = first(EXEMPT).map(|(_, list)| list.to_string_lossy().into_owned());
    if is_this_machine(host) || exempt.is_some_and(|list| is_exempt(host, &list)) {
        return Ok(None);
    }
    let text = value.to_str().ok_or(ProxyFault::Malformed);
    let proxy = text.and_then(parse_proxy);
    proxy.map(Some).map_err(|fault| ProxyVariableError { variable, fault })
}

/// Returns whether a host is this machine by its name or address.
pub fn is_this_machine(host: &str) -> bool {
    match without_brackets(host).parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// Returns whether a list names a host: `*` for every host, what names or addresses begin with before a `*`, a domain with
/// all that is below it, an address or a network.
fn is_exempt(host: &str, list: &str) -> bool {
    let host = without_brackets(host).trim_end_matches('.').to_ascii_lowercase();
    let address = host.parse::<IpAddr>().ok();
    list.split([',', ' ', '\t']).filter(|it| !it.is_empty()).any(|entry| {
        if let Some(start) = entry.strip_suffix('*') {
            return host.starts_with(&start.to_ascii_lowercase());
        }
        if let Some(address) = address {
            let entry = without_brackets(entry);
            return match entry.parse::<IpNet>() {
                Ok(network) => network.contains(&address),
                Err(_) => entry.parse() == Ok(address),
            };
        }
        let domain = entry.strip_prefix('*').unwrap_or(entry).trim_matches('.');
        let domain = domain.to_ascii_lowercase();
        let before = host.strip_suffix(&domain).filter(|_| !domain.is_empty());
        before.is_some_and(|it| it.is_empty() || it.ends_with('.'))
    })
}

fn without_brackets(host: &str) -> &str {
    host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    /// A URL, variables, and the port of the proxy.
    type ProxyChoice<'r> = (&'r str, &'r [(&'r str, &'r str)], Option<u16>);

    /// Returns the port of the proxy for a URL, none for no proxy.
    fn port(url: &str, variables: &[(&str, &str)]) -> Result<Option<u16>, String> {
        let lookup =
            |name: &str| variables.iter().find(|(it, _)| *it == name).map(|(_, it)| it.into());
        let proxy = choose(url, &lookup).map_err(|error| error.to_string())?;
        Ok(proxy.map(|it| it.port()))
    }

    #[test]
    fn the_scheme_of_the_url_says_which_variable_counts() {
        let (http, https) = ("http://h.example/", "https://h.example/");
        let both = [("http_proxy", "http://p:1"), ("https_proxy", "http://p:2")];
        let rows: [ProxyChoice<'_>; 13] = [
            (http, &[], None),
            (http, &both, Some(1)),
            (https, &both, Some(2)),
            (https, &both[..1], None),
            (http, &both[1..], None),
            (http, &[("HTTP_PROXY", "http://p:3")], None),
            (https, &[("HTTPS_PROXY", "http://p:3")], Some(3)),
            (https, &[("HTTPS_PROXY", "http://p:3"), ("https_proxy", "http://p:4")], Some(4)),
            (http, &[("ALL_PROXY", "http://p:5")], Some(5)),
            (https, &[("all_proxy", "http://p:5"), ("HTTPS_PROXY", "http://p:6")], Some(6)),
            (https, &[("https_proxy", ""), ("all_proxy", "p:7")], Some(7)),
            (https, &[("https_proxy", "u:s%40@p.example")], Some(80)),
            (https, &[("https_proxy", "https://p.example")], Some(443)),
        ];
        each_row(rows, |(url, variables, expected)| {
            assert_eq!(port(url, variables), Ok(expected));
        });
    }

    #[test]
    fn a_variable_that_names_no_proxy_is_named_without_its_value() {
        let malformed = "is not a URL such as `http://proxy.example.com:3128`";
        let socks = "is a SOCKS proxy, and only proxies of `http` and `https` are supported";
        let rows = [
            ("ht tp://u:secret@p", malformed),
            ("http://u:secret@p:99999", malformed),
            ("http://u:secret@p:", malformed),
            ("http://u:sec/ret@p:3128", malformed),
            ("gopher://u:secret@p:70", malformed),
            ("/run/proxy.sock", malformed),
            ("socks5h://u:secret@p:1080", socks),
            ("SOCKS4://p", socks),
        ];
        each_row(rows, |(value, fault)| {
            let expected = format!("the proxy in the variable `https_proxy` {fault}");
            let variables = [("https_proxy", value), ("all_proxy", "http://p:1")];
            assert_eq!(port("https://h.example/", &variables), Err(expected));
            // It does not count here.
            assert_eq!(port("http://h.example/", &variables), Ok(Some(1)));
            assert_eq!(port("https://localhost/", &variables), Ok(None));
        });
    }

    #[test]
    fn hosts_are_exempt_as_they_are_for_curl() {
        let rows = [
            ("https://h.example", "h.example", true),
            ("https://a.h.example:8443", "h.example", true),
            ("https://A.H.Example.", "x, .h.EXAMPLE.", true),
            ("https://h.example", "*.example", true),
            ("https://ah.example", "h.example", false),
            ("https://h.example", "a.h.example", false),
            ("https://h.example", "*", true),
            ("https://h.example", ".", false),
            ("https://192.0.2.7", "192.0.2.7", true),
            ("https://192.0.2.7", "a 192.0.2.0/24", true),
            ("https://192.0.2.7", "2.7", false),
            ("https://192.0.2.7", "198.51.* 192.0.*", true),
            ("https://192.0.2.7", "192.0.3.*", false),
            ("https://h.example", "H.*", true),
            ("https://[2001:db8::1]", "2001:db8::/32", true),
            ("https://[2001:db8::1]", "[2001:db8::1]", true),
            ("https://127.0.0.1:4433", "", true),
            ("https://[::1]", "", true),
            ("https://localhost", "", true),
        ];
        each_row(rows, |(url, list, exempt)| {
            let variables = [("https_proxy", "http://p:1"), ("no_proxy", list)];
            assert_eq!(port(url, &variables), Ok((!exempt).then_some(1)));
        });
    }
}
