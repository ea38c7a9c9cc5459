//! The connections of a client: over TCP, TLS, a proxy or a unix socket.

use std::path::Path;
use std::time::Duration;

use ureq::Agent;
use ureq::unversioned::transport::{
    ConnectProxyConnector, Connector as _, RustlsConnector, TcpConnector,
};

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

impl Client {
    /// Returns a client of the service at a URL.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not valid, or the credentials cannot be used with it.
    pub fn new(url: &str, identity: &Identity, timeouts: Timeouts) -> Result<Self, ClientError> {
        let socket = match url.strip_prefix("unix:") {
            Some(path) => Some(path.strip_prefix("//").unwrap_or(path)),
            None => url.starts_with('/').then_some(url),
        };
        if socket.is_none() && !url.starts_with("http://") && !url.starts_with("https://") {
            let shown = without_secrets(url);
            return Err(ClientError::Setup(format!(
                "`{shown}` is neither a URL of `http` or `https` nor the path of a unix socket; write `https://{shown}`, or `http://{shown}` for a daemon without a certificate"
            )));
        }
        // The library would take the text before that for the host, and look up a part of the password.
        if socket.is_none() && has_misplaced_at(url) {
            return Err(ClientError::Setup(MISPLACED_AT.to_owned()));
        }
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
        let advice = Hints::None;
        let Some(path) = socket else {
            let (certificates, tls) = Certificates::read(identity)?;
            let connector =
                ().chain(ConnectProxyConnector::default())
                    .chain(TcpConnector::default())
                    .chain(EarlyClose)
                    .chain(RustlsConnector::default());
            let proxy =
                proxy_of_environment(url).map_err(|error| ClientError::Setup(error.to_string()))?;
            let config = config.proxy(proxy).tls_config(tls).build();
            let agent = Agent::with_parts(config, connector, HostResolver::default());
            let base = url.trim_end_matches('/').to_owned();
            return Ok(Self { agent, base, name, token, certificates, advice });
        };
        let agent = socket::agent(config.proxy(None).build(), Path::new(path));
        let base = "http://127.0.0.1".to_owned();
        let certificates = Certificates::default();
        Ok(Self { agent, base, name, token, certificates, advice })
    }
}
