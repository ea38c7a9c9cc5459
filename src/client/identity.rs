//! Credentials of a client, and the addresses that may see them.
#![expect(clippy::disallowed_methods, reason = "certificates and tokens are files")]

use std::path::{Path, PathBuf};

use ureq::http;

use super::error::ClientError;
use crate::config::is_this_machine;

/// The credentials of a client, and the authority that it trusts.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// The authority of the service's certificate, as PEM; without it the public authorities.
    pub tls_ca: Option<PathBuf>,
    /// The client certificate.
    pub tls_cert: Option<PathBuf>,
    /// Its private key.
    pub tls_key: Option<PathBuf>,
    /// The file that holds the token.
    pub token_file: Option<PathBuf>,
    /// Whether the token may be sent over plain `http://` to other hosts.
    pub insecure_http: bool,
}

impl Identity {
    /// Returns the identity of a certificate and its key.
    pub fn of_files(ca: Option<PathBuf>, pair: Option<(PathBuf, PathBuf)>) -> Self {
        let (tls_cert, tls_key) = pair.unzip();
        Self { tls_ca: ca, tls_cert, tls_key, ..Self::default() }
    }

    /// Fills in what is not configured; a certificate and its key belong together.
    #[must_use]
    pub fn or(&self, default: Self) -> Self {
        let own = self.clone();
        let (tls_cert, tls_key) = match own.tls_cert {
            Some(certificate) => (Some(certificate), own.tls_key),
            None => (default.tls_cert, default.tls_key),
        };
        Self { tls_ca: own.tls_ca.or(default.tls_ca), tls_cert, tls_key, ..own }
    }

    /// Returns whether a certificate is configured.
    pub fn has_certificate(&self) -> bool {
        self.tls_cert.is_some()
    }

    /// Reads the token.
    pub(super) fn token(&self) -> Result<Option<String>, ClientError> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let shown = path.display();
        let text = String::from_utf8(read(path)?)
            .map_err(|_| ClientError::Setup(format!("the token in `{shown}` is not text")))?;
        match text.trim() {
            "" => Err(ClientError::Setup(format!("the token file `{shown}` is empty"))),
            token if http::HeaderValue::from_str(token).is_err() => {
                Err(ClientError::Setup(format!(
                    "the token file `{shown}` has more than one line, or characters that no token has"
                )))
            }
            token => Ok(Some(token.to_owned())),
        }
    }
}

/// Returns whether requests to a URL cannot be read in transit: they are encrypted, or stay on this machine.
pub fn is_private(url: &str) -> bool {
    let Ok(url) = url.parse::<http::Uri>() else { return false };
    url.scheme_str() == Some("https") || is_this_machine(url.host().unwrap_or_default())
}

/// Returns whether a URL has a user or password in it.
pub(super) fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|it| it.contains('@'))
}

/// Reads a file of credentials.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, ClientError> {
    std::fs::read(path)
        .map_err(|error| ClientError::Setup(format!("cannot read `{}`: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::{Identity, has_password, is_private};

    #[test]
    fn a_flag_replaces_its_own_default_only() {
        let path = |name: &str| Some(std::path::PathBuf::from(name));
        let pair = |one: &str, two: &str| path(one).zip(path(two));
        let puppet = || Identity::of_files(path("puppet-ca"), pair("puppet-cert", "puppet-key"));
        let shown = |it: Identity| [it.tls_ca, it.tls_cert, it.tls_key, it.token_file];
        let defaults = [path("puppet-ca"), path("puppet-cert"), path("puppet-key")];
        let [ca, certificate, key] = defaults;
        let token = Identity { token_file: path("token"), ..Identity::of_files(None, None) };
        let expected = [ca.clone(), certificate.clone(), key.clone(), path("token")];
        assert_eq!(shown(token.or(puppet())), expected);
        let own_ca = Identity::of_files(path("ca"), None);
        assert_eq!(shown(own_ca.or(puppet())), [path("ca"), certificate, key, None]);
        let own_pair = Identity::of_files(None, pair("cert", "key"));
        assert_eq!(shown(own_pair.or(puppet())), [ca, path("cert"), path("key"), None]);
    }

    #[test]
    fn what_is_encrypted_or_stays_here_is_private() {
        for (url, private) in [
            ("https://clade.example.com:4433", true),
            ("http://127.0.0.1:4433", true),
            ("http://127.8.8.8", true),
            ("http://[::1]:4433/x", true),
            ("http://[::ffff:127.0.0.1]:4433", true),
            ("http://LOCALHOST:4433", true),
            ("http://clade:4433", false),
            ("http://localhost.example.com", false),
            ("http://127.0.0.1@evil.example.com", false),
            ("http://127.0.0.1.example.com", false),
            ("http://10.0.0.1", false),
            ("http://0.0.0.0", false),
            ("http://", false),
        ] {
            assert_eq!(is_private(url), private, "{url}");
        }
        assert!(has_password("http://u:p@host/x") && !has_password("http://host/x@y"));
    }
}
