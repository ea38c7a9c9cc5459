//! Asking a daemon.
#![expect(clippy::disallowed_methods, reason = "certificates and tokens are files")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use clap::Args;
use serde_json::Value;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, http};

/// Which daemon to ask, and who we are to it.
#[derive(Clone, Debug, Args)]
pub(super) struct DaemonArgs {
    /// The daemon to ask
    #[arg(long, value_name = "URL", env = "CLADE_SERVER", default_value = "http://127.0.0.1:4433")]
    server: String,
    #[command(flatten)]
    identity: Identity,
}

/// Who we are to a service, and whom we trust to be it.
#[derive(Clone, Debug, Args)]
pub(super) struct Identity {
    /// The authority of the service's certificate, as PEM [default: the public authorities]
    #[arg(long, value_name = "FILE", env = "CLADE_TLS_CA")]
    tls_ca: Option<PathBuf>,
    /// Our certificate, such as the host's of Puppet
    #[arg(long, value_name = "FILE", env = "CLADE_TLS_CERT", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its private key
    #[arg(long, value_name = "FILE", env = "CLADE_TLS_KEY", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The file that holds our token
    #[arg(long, value_name = "FILE", env = "CLADE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
}

/// A daemon that can be asked.
pub(super) struct Daemon {
    agent: Agent,
    base: String,
    token: Option<String>,
}

/// What a service said, as text.
pub(super) struct Page {
    pub(super) status: http::StatusCode,
    pub(super) etag: Option<String>,
    pub(super) text: String,
}

/// How much of an answer is read.
const PAGE_LIMIT: u64 = 256 << 20;

/// What a daemon said.
pub(super) struct Said {
    pub(super) status: http::StatusCode,
    pub(super) body: Value,
}

impl DaemonArgs {
    /// Prepares to ask; every question takes no longer than `timeout`.
    pub(super) fn daemon(&self, timeout: Duration) -> Result<Daemon> {
        self.identity.at(&self.server, timeout)
    }
}

impl Identity {
    /// Prepares to ask a service; every question takes no longer than `timeout`.
    pub(super) fn at(&self, url: &str, timeout: Duration) -> Result<Daemon> {
        let roots = match &self.tls_ca {
            None => RootCerts::WebPki,
            Some(path) => {
                let found = certificates(path)?;
                RootCerts::Specific(Arc::new(found))
            }
        };
        let client = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                let pem = read(key)?;
                let private = PrivateKey::from_pem(&pem)
                    .with_context(|| format!("the private key in `{}`", key.display()))?;
                Some(ClientCert::new_with_certs(&certificates(certificate)?, private))
            }
            _ => None,
        };
        let tls = TlsConfig::builder().root_certs(roots).client_cert(client).build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            // A secret must not follow a redirect.
            .max_redirects(0)
            .build()
            .new_agent();
        let token = match &self.token_file {
            None => None,
            Some(path) => {
                let text = String::from_utf8(read(path)?)
                    .map_err(|_| anyhow!("the token in `{}` is no text", path.display()))?;
                Some(text.trim().to_owned())
            }
        };
        Ok(Daemon { agent, base: url.trim_end_matches('/').to_owned(), token })
    }
}

impl Daemon {
    /// Asks for a text, with headers of one's own.
    pub(super) fn page(&self, path: &str, headers: &[(&str, &str)]) -> Result<Page> {
        let mut request = self.agent.get(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut response = request.call().with_context(|| format!("cannot ask `{}`", self.base))?;
        let etag = response.headers().get("etag").and_then(|it| it.to_str().ok());
        let etag = etag.map(str::to_owned);
        let status = response.status();
        let body = response.body_mut().with_config().limit(PAGE_LIMIT);
        let text = body
            .read_to_string()
            .with_context(|| format!("the answer of `{}` broke off", self.base))?;
        Ok(Page { status, etag, text })
    }

    /// Asks for a document.
    pub(super) fn get(&self, path: &str) -> Result<Said> {
        let url = format!("{}{path}", self.base);
        let mut request = self.agent.get(&url);
        if let Some(token) = &self.token {
            request = request.header("X-Authentication", token);
        }
        let mut response = request.call().with_context(|| format!("cannot ask `{}`", self.base))?;
        let status = response.status();
        let text = response
            .body_mut()
            .read_to_string()
            .with_context(|| format!("the answer of `{}` broke off", self.base))?;
        let body = serde_json::from_str(&text)
            .map_err(|_| anyhow!("`{url}` answers {status} with what is no JSON"))?;
        Ok(Said { status, body })
    }
}

impl Said {
    /// Returns the document, or the error that came in its place.
    pub(super) fn document(self) -> Result<Value> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let said = self.body.get("msg").and_then(Value::as_str).unwrap_or("no reason");
        Err(anyhow!("the daemon answers {}: {said}", self.status))
    }

    /// Returns the kind of an error.
    pub(super) fn kind(&self) -> Option<&str> {
        self.body.get("kind")?.as_str()
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>> {
    let pem = read(path)?;
    let found: Vec<Certificate<'static>> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if found.is_empty() {
        return Err(anyhow!("there is no certificate in `{}`", path.display()));
    }
    Ok(found)
}
