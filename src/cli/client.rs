//! Asking a daemon.
#![expect(clippy::disallowed_methods, reason = "certificates and tokens are files")]

mod advice;
mod certificates;
mod early_close;
mod list;
mod socket;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde_json::Value;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    ConnectProxyConnector, Connector as _, RustlsConnector, TcpConnector,
};
use ureq::{Agent, Body, RequestBuilder, http};

use super::output::Output;
use advice::Advice;
use certificates::Certificates;
use early_close::EarlyClose;
pub(super) use list::Each;

/// The daemon that is asked where none is named.
pub(super) const DEFAULT_SERVER: &str = "http://127.0.0.1:4433";

/// Which daemon to ask, and who we are to it.
#[derive(Clone, Debug, Args)]
pub(super) struct DaemonArgs {
    /// The daemon to ask: a URL, or the path of its unix socket; of several the first
    #[arg(long, value_name = "URL", env = "CLADE_SERVER", default_value = DEFAULT_SERVER)]
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
    /// Send the token over plain `http://` to other hosts, where it can be read in transit
    #[arg(long, env = "CLADE_INSECURE_HTTP")]
    insecure_http: bool,
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    /// For a connection.
    pub(super) connect: Duration,
    /// For the whole answer.
    pub(super) total: Duration,
}

/// A daemon that can be asked.
pub(super) struct Daemon {
    agent: Agent,
    /// What paths are appended to.
    base: String,
    /// What people call it.
    name: String,
    token: Option<String>,
    certificates: Certificates,
    advice: Advice,
}

/// What a service wrote.
pub(super) struct Reply {
    pub(super) status: http::StatusCode,
    /// The commit that answered, if a daemon did.
    pub(super) commit: Option<String>,
    pub(super) etag: Option<String>,
    pub(super) text: String,
}

/// How many bytes of an answer are read: pages of nodes with their facts are large.
const ANSWER_LIMIT: u64 = 256 << 20;

/// How many bytes of an answer are read that says why there is no other.
const REFUSAL_LIMIT: u64 = 1 << 20;

/// What a daemon said.
pub(super) struct Said {
    pub(super) status: http::StatusCode,
    pub(super) body: Value,
    advice: Advice,
}

/// How the answer of a daemon is written.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum AnswerFormat {
    /// For people
    Human,
    /// The JSON document of the daemon
    Json,
}

impl DaemonArgs {
    /// Prepares to ask, and names the daemon; every question takes no longer than `timeout`.
    pub(super) fn daemon(&self, timeout: Duration, output: &mut Output) -> Result<Daemon> {
        let first = self.server.split(',').next().unwrap_or_default();
        self.identity.named(first, timeout, output)
    }
}

impl Identity {
    /// Fills in what is not configured; a certificate and its key belong together.
    pub(super) fn or(&self, default: Self) -> Self {
        let own = self.clone();
        let (tls_cert, tls_key) = match own.tls_cert {
            Some(certificate) => (Some(certificate), own.tls_key),
            None => (default.tls_cert, default.tls_key),
        };
        Self { tls_ca: own.tls_ca.or(default.tls_ca), tls_cert, tls_key, ..own }
    }

    /// Returns whether a certificate is configured.
    pub(super) fn has_certificate(&self) -> bool {
        self.tls_cert.is_some()
    }

    /// Who shows a certificate and trusts one authority.
    pub(super) fn of_files(ca: Option<PathBuf>, pair: Option<(PathBuf, PathBuf)>) -> Self {
        let (tls_cert, tls_key) = pair.unzip();
        Self { tls_ca: ca, tls_cert, tls_key, token_file: None, insecure_http: false }
    }

    /// Prepares to ask a daemon for a person: it is named, and errors say what to try.
    pub(super) fn named(
        &self,
        url: &str,
        timeout: Duration,
        output: &mut Output,
    ) -> Result<Daemon> {
        output.note(&format!("asking {}", without_password(url)));
        Ok(Daemon { advice: Advice::Given, ..self.at(url, timeout)? })
    }

    /// Prepares to ask a service; every question takes no longer than `timeout`.
    pub(super) fn at(&self, url: &str, timeout: Duration) -> Result<Daemon> {
        self.within(url, Timeouts { connect: timeout, total: timeout })
    }

    /// Prepares to ask a service.
    pub(super) fn within(&self, url: &str, patience: Timeouts) -> Result<Daemon> {
        let socket = match url.strip_prefix("unix:") {
            Some(path) => Some(path.strip_prefix("//").unwrap_or(path)),
            None => url.starts_with('/').then_some(url),
        };
        if socket.is_none() && !url.starts_with("http://") && !url.starts_with("https://") {
            bail!("`{url}` is neither a URL of `http` or `https` nor the path of a unix socket");
        }
        let config = Agent::config_builder()
            .timeout_global(Some(patience.total))
            .timeout_connect(Some(patience.connect))
            .timeout_resolve(Some(patience.connect))
            .http_status_as_error(false)
            // A secret must not follow a redirect.
            .max_redirects(0);
        let token = self.token()?;
        let name = without_password(url);
        let has_secret = token.is_some() || has_password(url);
        if has_secret && socket.is_none() && !self.insecure_http && !is_private(url) {
            bail!(
                "`{name}` would get the token in clear text: use `https://`, or --insecure-http if the network is trusted"
            );
        }
        let Some(path) = socket else {
            let (certificates, tls) = Certificates::read(self)?;
            let connector =
                ().chain(ConnectProxyConnector::default())
                    .chain(TcpConnector::default())
                    .chain(EarlyClose)
                    .chain(RustlsConnector::default());
            let config = config.tls_config(tls).build();
            let agent = Agent::with_parts(config, connector, DefaultResolver::default());
            let base = url.trim_end_matches('/').to_owned();
            return Ok(Daemon { agent, base, name, token, certificates, advice: Advice::None });
        };
        let agent = socket::agent(config.proxy(None).build(), Path::new(path));
        let base = "http://127.0.0.1".to_owned();
        let certificates = Certificates::default();
        Ok(Daemon { agent, base, name, token, certificates, advice: Advice::None })
    }

    fn token(&self) -> Result<Option<String>> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let text = String::from_utf8(read(path)?)
            .map_err(|_| anyhow!("the token in `{}` is no text", path.display()))?;
        match text.trim() {
            "" => bail!("the token file `{}` is empty", path.display()),
            token => Ok(Some(token.to_owned())),
        }
    }
}

impl Daemon {
    /// Returns what people call it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Asks for a text, with headers of one's own.
    pub(super) fn fetch(&self, path: &str, headers: &[(&str, &str)]) -> Result<Reply> {
        let mut request = self.introduced(self.agent.get(format!("{}{path}", self.base)));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.reply(request.call())
    }

    /// Asks for a document.
    pub(super) fn get(&self, path: &str) -> Result<Said> {
        self.fetch(path, &[])?.said(&format!("{}{path}", self.name), self.advice)
    }

    /// Asks for a document; returns the commit that answered as well.
    pub(super) fn get_with_commit(&self, path: &str) -> Result<(Option<String>, Said)> {
        let mut reply = self.fetch(path, &[])?;
        let commit = reply.commit.take();
        Ok((commit, reply.said(&format!("{}{path}", self.name), self.advice)?))
    }

    /// Asks for a document with a document of JSON.
    pub(super) fn ask(&self, path: &str, body: &str) -> Result<Said> {
        self.post(path, body)?.said(&format!("{}{path}", self.name), self.advice)
    }

    /// Asks for a list, with a document of JSON or without, and uses each element while the list
    /// arrives; returns how many there were. No element may have more bytes than `largest`.
    pub(super) fn list(
        &self,
        path: &str,
        body: Option<&str>,
        largest: u64,
        each: Each<'_>,
    ) -> Result<usize> {
        let url = format!("{}{path}", self.base);
        let json = ("Content-Type", "application/json");
        let response = match body {
            None => self.introduced(self.agent.get(url)).call(),
            Some(body) => self.introduced(self.agent.post(url)).header(json.0, json.1).send(body),
        };
        let mut response = self.connected(response)?;
        let asked = format!("{}{path}", self.name);
        if !response.status().is_success() {
            let said = self.read(response)?.said(&asked, self.advice)?;
            return Err(said.document().err().unwrap_or_else(|| anyhow!("`{asked}` has no list")));
        }
        let text = response.body_mut().with_config().limit(ANSWER_LIMIT).reader();
        list::read(text, largest, each)
            .with_context(|| format!("the answer of `{}` cannot be used", self.name))
    }

    /// Asks a question with a document of JSON.
    pub(super) fn post(&self, path: &str, body: &str) -> Result<Reply> {
        let request = self.agent.post(format!("{}{path}", self.base));
        let request = self.introduced(request).header("Content-Type", "application/json");
        self.reply(request.send(body))
    }

    fn introduced<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.token {
            Some(token) => request.header("X-Authentication", token),
            None => request,
        }
    }

    fn reply(&self, response: Result<http::Response<Body>, ureq::Error>) -> Result<Reply> {
        let response = self.connected(response)?;
        self.read(response)
    }

    /// Says why there is no answer.
    fn connected(
        &self,
        response: Result<http::Response<Body>, ureq::Error>,
    ) -> Result<http::Response<Body>> {
        response
            .map_err(|error| {
                match self.certificates.explain(&error, &self.name, Timestamp::now()) {
                    Some(problem) => anyhow::Error::new(problem),
                    None => self.advice.on(error, &self.base),
                }
            })
            .with_context(|| format!("cannot ask `{}`", self.name))
    }

    fn read(&self, mut response: http::Response<Body>) -> Result<Reply> {
        let header = |name: &str| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        let (commit, etag) = (header("X-Clade-Commit"), header("ETag"));
        let limit = if response.status().is_success() { ANSWER_LIMIT } else { REFUSAL_LIMIT };
        let body = response.body_mut().with_config().limit(limit);
        let text = body
            .read_to_string()
            .with_context(|| format!("the answer of `{}` broke off", self.name))?;
        Ok(Reply { status: response.status(), commit, etag, text })
    }
}

impl Reply {
    fn said(self, url: &str, advice: Advice) -> Result<Said> {
        let status = self.status;
        if status.is_redirection() {
            bail!("`{url}` answers {status}, and redirects are not followed: correct the URL");
        }
        let body = serde_json::from_str(&self.text).map_err(|_| {
            let hint = advice.on_other_answer(url);
            anyhow!("`{url}` answers {status} with what is not JSON{hint}")
        })?;
        Ok(Said { status, body, advice })
    }
}

impl Said {
    /// Returns the document, or the error that came in its place.
    pub(super) fn document(self) -> Result<Value> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let said = self.body.get("msg").and_then(Value::as_str).unwrap_or("no reason");
        let path = self.body.get("details").filter(|_| self.kind() == Some("not-found"));
        let hint = self.advice.on_status(self.status, path.and_then(Value::as_str));
        Err(anyhow!("the daemon answers {}: {said}{hint}", self.status))
    }

    /// Returns the kind of an error.
    pub(super) fn kind(&self) -> Option<&str> {
        self.body.get("kind")?.as_str()
    }
}

/// Returns whether what is sent to a URL cannot be read on the way: it is encrypted, or stays here.
pub(super) fn is_private(url: &str) -> bool {
    let Ok(url) = url.parse::<http::Uri>() else { return false };
    let host = url.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let is_here = || match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    };
    url.scheme_str() == Some("https") || is_here()
}

/// Returns whether a URL has a user or password in it.
fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().is_some_and(|it| it.contains('@'))
}

/// Returns a URL as it may be shown.
fn without_password(url: &str) -> String {
    let url = url.trim_end_matches('/');
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((secret, _)) => {
            format!("{scheme}://{}", rest.get(secret.len() + 1..).unwrap_or_default())
        }
        None => url.to_owned(),
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("cannot read `{}`", path.display()))
}

#[cfg(test)]
mod tests {
    use super::{Identity, has_password, is_private, without_password};

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

    #[test]
    fn a_url_is_shown_without_its_password() {
        for (url, shown) in [
            ("https://u:s@host:4433/x@y/", "https://host:4433/x@y"),
            ("https://host/x@y", "https://host/x@y"),
            ("unix:///run/clade.sock", "unix:///run/clade.sock"),
            ("/run/clade.sock", "/run/clade.sock"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
