//! The connections of a client: over TCP, TLS, a proxy or a unix socket.

use std::borrow::Cow;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::time::Duration;

use ureq::unversioned::transport::{
    ConnectProxyConnector, Connector as _, RustlsConnector, TcpConnector,
};
use ureq::{Agent, http};

use super::advice::Hints;
use super::certificates::Certificates;
use super::early_close::EarlyClose;
use super::identity::{Identity, has_password, is_private};
use super::resolver::HostResolver;
use super::{Client, ClientError, socket};
use crate::config::{has_misplaced_at, proxy_of_environment, without_secrets};

/// How long a request may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// To connect.
    pub connect: Duration,
    /// Altogether.
    pub total: Duration,
}

impl Timeouts {
    /// Returns the time-outs of a request that may take so long, whatever it takes to connect.
    pub fn within(total: Duration) -> Self {
        Self { connect: total, total }
    }
}

/// The buffers of a connection, in bytes. They are filled with zeros first, and 128 KiB each, as the library has them, took
/// a fifth of the time of `clade enc`. The head of an answer has to fit into the first, that of a request into the second:
/// the daemon takes none that is longer.
const INPUT: usize = 32 << 10;
const OUTPUT: usize = 64 << 10;

/// What is wrong with a URL that has an `@` behind its host. The URL is not repeated, since nothing tells its password apart.
const MISPLACED_AT: &str = "the URL of a service has an `@` behind its host: in a user or password write `%2F` for `/`, `%3F` for `?` and `%23` for `#`, and elsewhere `%40` for `@`";

/// Returns a URL with its scheme in small letters.
fn with_lower_scheme(url: &str) -> Cow<'_, str> {
    match url.split_once("://") {
        Some((scheme, rest))
            if scheme.bytes().any(|it| it.is_ascii_uppercase()) && !scheme.contains('/') =>
        {
            Cow::Owned(format!("{}://{rest}", scheme.to_ascii_lowercase()))
        }
        _ => Cow::Borrowed(url),
    }
}

/// Returns whether a text is meant as the path of a unix socket: it begins as a path does, or is that of one that is there.
fn is_socket(url: &str) -> bool {
    ["/", "./", "../"].iter().any(|it| url.starts_with(it))
        || std::fs::metadata(url).is_ok_and(|it| it.file_type().is_socket())
}

/// Returns the path of the unix socket that a text names; `None` if it is a URL that can be used.
fn socket_of(url: &str) -> Result<Option<&str>, ClientError> {
    let socket = match url.strip_prefix("unix:") {
        Some(path) => Some(path.strip_prefix("//").unwrap_or(path)),
        None => is_socket(url).then_some(url),
    };
    if socket.is_some() {
        return Ok(socket);
    }
    if !url.starts_with("http://") && !url.starts_with("https://") {
        let shown = without_secrets(url);
        return Err(ClientError::Setup(format!(
            "`{shown}` is neither a URL of `http` or `https` nor the path of a unix socket; write `https://{shown}`, or `http://{shown}` for a daemon without a certificate"
        )));
    }
    // The library would take the text before that for the host, and look up a part of the password.
    if has_misplaced_at(url) {
        return Err(ClientError::Setup(MISPLACED_AT.to_owned()));
    }
    if let Err(error) = url.parse::<http::Uri>() {
        let shown = without_secrets(url);
        let ascii = if url.is_ascii() {
            ""
        } else {
            "; write a host with other letters in its ASCII form, `xn--…`"
        };
        return Err(ClientError::Setup(format!("`{shown}` is not a URL: {error}{ascii}")));
    }
    Ok(None)
}

impl Client {
    /// Returns a client of the service at a URL.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not valid, or the credentials cannot be used with it.
    pub fn new(url: &str, identity: &Identity, timeouts: Timeouts) -> Result<Self, ClientError> {
        let url = &*with_lower_scheme(url);
        let socket = socket_of(url)?;
        let config = Agent::config_builder()
            .timeout_global(Some(timeouts.total))
            .timeout_connect(Some(timeouts.connect))
            .timeout_resolve(Some(timeouts.connect))
            .http_status_as_error(false)
            .input_buffer_size(INPUT)
            .output_buffer_size(OUTPUT)
            // A secret must not follow a redirect.
            .max_redirects(0);
        let token = identity.token()?;
        let name = without_secrets(url.trim_end_matches('/'));
        let has_secret = token.is_some() || has_password(url);
        if has_secret && socket.is_none() && !identity.insecure_http && !is_private(url) {
            return Err(ClientError::Setup(format!(
                "`{name}` would get the token in clear text: use `https://`, or --insecure-http if the network is trusted"
            )));
        }
        let Some(path) = socket else {
            let (certificates, tls) = Certificates::read(identity)?;
            let connector =
                ().chain(ConnectProxyConnector::default())
                    .chain(TcpConnector::default())
                    .chain(EarlyClose)
                    .chain(RustlsConnector::default());
            let proxy =
                proxy_of_environment(url).map_err(|error| ClientError::Setup(error.to_string()))?;
            let shown = proxy.as_ref().map(|it| without_secrets(&it.uri().to_string()));
            let config = config.proxy(proxy).tls_config(tls).build();
            let agent = Agent::with_parts(config, connector, HostResolver::default());
            let base = url.trim_end_matches('/').to_owned();
            let advice = Hints::Scheme;
            return Ok(Self { agent, base, name, proxy: shown, token, certificates, advice });
        };
        let agent = socket::agent(config.proxy(None).build(), Path::new(path));
        let base = "http://127.0.0.1".to_owned();
        let (certificates, advice) = (Certificates::default(), Hints::None);
        Ok(Self { agent, base, name, proxy: None, token, certificates, advice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    /// Says why there is no client.
    fn refusal(url: &str, identity: &Identity) -> Option<String> {
        let timeouts = Timeouts::within(Duration::from_secs(1));
        Client::new(url, identity, timeouts).err().map(|it| it.to_string())
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a token is a file")]
    fn what_is_wrong_with_a_url_or_a_token_is_said_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let token_file = directory.path().join("token");
        let mut identity = Identity { token_file: Some(token_file.clone()), ..Identity::default() };
        let rows = [
            ("https://clade.example.com", "t\n", ""),
            ("HTTPS://clade.example.com", "t\n", ""),
            ("http://clade.example.com", "t\n", "would get the token in clear text"),
            ("https://bücher.example", "t\n", "in its ASCII form, `xn--…`"),
            ("https://[::1", "t\n", "`https://[::1` is not a URL: "),
            ("https://a b", "t\n", "is not a URL: "),
            ("clade.example.com", "t\n", "is neither a URL of"),
            ("./u.sock", "t\n", ""),
            ("../u.sock", "t\n", ""),
            ("https://clade.example.com", "t\nu\n", "token` has more than one line"),
            ("https://clade.example.com", "t\u{7}\n", "token` has more than one line"),
            ("https://clade.example.com", "\n", "token` is empty"),
        ];
        each_row(rows, |(url, token, said)| {
            std::fs::write(&token_file, token).unwrap();
            let refused = refusal(url, &identity).unwrap_or_default();
            assert!(refused.contains(said) && refused.is_empty() == said.is_empty(), "{refused}");
        });
        identity.token_file = None;
        let path = directory.path().join("u.sock");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert_eq!(refusal(path.to_str().unwrap(), &identity), None);
    }
}
