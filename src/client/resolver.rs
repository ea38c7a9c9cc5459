//! From names of hosts to addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;
use ureq::unversioned::transport::time::Duration;

/// Resolves names within a time-out, for which it takes a thread. What is an address already takes neither.
#[derive(Debug, Default)]
pub(super) struct HostResolver(DefaultResolver);

impl Resolver for HostResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let timeout = match uri.host().is_some_and(is_address) {
            true => NextTimeout { after: Duration::NotHappening, ..timeout },
            false => timeout,
        };
        self.0.resolve(uri, config, timeout)
    }
}

/// Returns whether the host of a URL is an address; one of version 6 stands in brackets.
fn is_address(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<Ipv4Addr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_names() {
        for (host, expected) in [
            ("127.0.0.1", true),
            ("[::1]", true),
            ("localhost", false),
            ("127.1", false),
            ("[127.0.0.1]", false),
            ("1.2.3.4.example.com", false),
        ] {
            assert_eq!(is_address(host), expected, "{host}");
        }
    }

    #[test]
    fn an_address_is_resolved_whatever_time_is_left() {
        let uri: Uri = "http://[::1]:4433/readyz".parse().unwrap();
        let timeout = NextTimeout {
            after: Duration::Exact(std::time::Duration::ZERO),
            ..NextTimeout::default()
        };
        let found = HostResolver::default().resolve(&uri, &Config::default(), timeout).unwrap();
        assert_eq!(&*found, ["[::1]:4433".parse().unwrap()]);
    }
}
