//! The requests to one repository over HTTP: who we are, where it is, what the answers mean.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ureq::http::{HeaderMap, Response, StatusCode, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, BodyReader};

use crate::config::{parse_proxy, proxy_of_environment, read_authorities, read_secret};
use crate::git::failure::{FetchError, FetchFailure};
use crate::git::options::{Credentials, Proxy};
use crate::git::remote::{Scheme, Url};
use crate::git::transport::attempt::Attempt;

const REDIRECTS: usize = 5;

/// The length from which on a name may be a token.
const SHORTEST_TOKEN: usize = 20;

pub(super) struct Session {
    agent: Agent,
    /// The URL of the repository, after redirects.
    base: String,
    authorization: Option<String>,
    /// What is asked of it: `git-upload-pack` or `git-receive-pack`.
    service: &'static str,
}

impl Session {
    /// Asks for the refs of the repository, following redirects on its host.
    pub(super) fn open(
        attempt: &Attempt,
        service: &'static str,
    ) -> Result<(Self, BodyReader<'static>), FetchError> {
        let wrong = |detail: &str| attempt.error(FetchFailure::InvalidSettings, detail);
        let mut url = attempt.remote.url().cloned().ok_or_else(|| wrong("it is not a URL"))?;
        url.path.truncate(url.path.trim_end_matches('/').len());
        let authorization = authorization(attempt, &url)?;
        for _ in 0..=REDIRECTS {
            let session = Self {
                agent: agent(attempt, &url)?,
                base: url.to_string(),
                authorization: authorization.clone(),
                service,
            };
            let response = session.get_refs(attempt)?;
            if response.status().is_redirection() {
                url = redirected(attempt, &url, service, response.headers())?;
                continue;
            }
            let body =
                accept(attempt, response, &format!("application/x-{service}-advertisement"))?;
            return Ok((session, body));
        }
        Err(attempt.error(FetchFailure::RedirectRefused, "it redirects without end"))
    }

    fn get_refs(&self, attempt: &Attempt) -> Result<Response<Body>, FetchError> {
        let mut request = self.agent.get(format!("{}{}", self.base, query(self.service)));
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.config().timeout_global(Some(attempt.remaining()?)).build();
        request.call().map_err(|error| tell(attempt, error))
    }

    /// Asks for objects.
    pub(super) fn post(
        &self,
        attempt: &Attempt,
        question: &[u8],
    ) -> Result<BodyReader<'static>, FetchError> {
        let mut request = self
            .agent
            .post(format!("{}/{}", self.base, self.service))
            .header(header::CONTENT_TYPE, format!("application/x-{}-request", self.service));
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.config().timeout_global(Some(attempt.remaining()?)).build();
        let response = request.send(question).map_err(|error| tell(attempt, error))?;
        accept(attempt, response, &format!("application/x-{}-result", self.service))
    }
}

/// Returns what is asked first.
fn query(service: &str) -> String {
    format!("/info/refs?service={service}")
}

fn agent(attempt: &Attempt, url: &Url) -> Result<Agent, FetchError> {
    let roots = match &attempt.http.ca_file {
        Some(path) => RootCerts::Specific(Arc::new(read_authorities(path).map_err(|error| {
            let detail = format!("the file of certificates `{}` {error}", path.display());
            attempt.error(FetchFailure::InvalidSettings, detail)
        })?)),
        None => RootCerts::WebPki,
    };
    let config = Agent::config_builder()
        .http_status_as_error(false)
        // Redirects are followed here, where the host is checked.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("git/clade-", env!("CARGO_PKG_VERSION")))
        .tls_config(TlsConfig::builder().root_certs(roots).build());
    let wrong = |detail: &dyn Display| attempt.error(FetchFailure::InvalidSettings, detail);
    let proxy = match &attempt.http.proxy {
        Proxy::Environment => {
            proxy_of_environment(&url.to_string()).map_err(|error| wrong(&error))?
        }
        Proxy::Direct => None,
        Proxy::Url(text) => {
            let named = parse_proxy(text);
            Some(
                named
                    .map_err(|fault| wrong(&format_args!("the proxy of `--git-proxy` {fault}")))?,
            )
        }
    };
    Ok(Agent::new_with_config(config.proxy(proxy).build()))
}

/// Returns the header that says who we are.
fn authorization(attempt: &Attempt, url: &Url) -> Result<Option<String>, FetchError> {
    let basic = |name: &str, password: &str| {
        let pair = format!("{name}:{password}");
        // Forges take a token in place of the name as well.
        let name = if name.len() >= SHORTEST_TOKEN { name } else { "" };
        attempt.note_secrets(&[&pair, password, name]);
        Some(format!("Basic {}", STANDARD.encode(pair)))
    };
    Ok(match &attempt.http.credentials {
        Credentials::FromUrl => {
            url.user.as_ref().and_then(|(name, password)| basic(name, password))
        }
        Credentials::Basic { username, password_file } => {
            basic(username, &secret(attempt, password_file)?)
        }
        Credentials::Bearer { token_file } => {
            let token = secret(attempt, token_file)?;
            attempt.note_secrets(&[&token]);
            Some(format!("Bearer {token}"))
        }
    })
}

fn secret(attempt: &Attempt, path: &Path) -> Result<String, FetchError> {
    read_secret(path).map_err(|error| {
        let detail = format!("the secret in `{}` {error}", path.display());
        attempt.error(FetchFailure::InvalidSettings, detail)
    })
}

/// Returns where the repository is now, if that is on the same host.
fn redirected(
    attempt: &Attempt,
    from: &Url,
    service: &str,
    headers: &HeaderMap,
) -> Result<Url, FetchError> {
    let refuse = |detail: String| attempt.error(FetchFailure::RedirectRefused, detail);
    let location = headers.get(header::LOCATION).and_then(|it| it.to_str().ok());
    let location = location.ok_or_else(|| refuse("it redirects to nowhere".to_owned()))?;
    let whole = if location.starts_with('/') && !location.starts_with("//") {
        format!("{}://{}{location}", from.scheme.as_str(), from.authority)
    } else {
        location.to_owned()
    };
    let (scheme, rest) = match whole.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Scheme::Https, rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Scheme::Http, rest),
        _ => return Err(refuse("it redirects to something that is not a URL".to_owned())),
    };
    // A query may hold secrets: only what stands before it is shown.
    let Some(repository) = rest.strip_suffix(&query(service)) else {
        let shown = rest.split(['?', '#']).next().unwrap_or_default();
        let shown = shown.rsplit_once('@').map_or(shown, |(_, it)| it);
        return Err(refuse(format!("it redirects to `{shown}`, which is not a repository")));
    };
    let to = Url::parse(scheme, repository)
        .map_err(|_| refuse("it redirects to something that is not a URL".to_owned()))?;
    if same_host(from, &to) {
        Ok(Url { user: None, ..to })
    } else {
        Err(refuse(format!(
            "it redirects to another host, `{}://{}`",
            to.scheme.as_str(),
            to.authority
        )))
    }
}

/// Returns whether a redirect stays where the credentials belong: same scheme, host and port, or
/// from `http` to `https` at the same name.
fn same_host(from: &Url, to: &Url) -> bool {
    let default = |scheme: Scheme| if scheme == Scheme::Https { "443" } else { "80" };
    let place = |url: &Url| {
        let (host, port) = url.host_and_port();
        (host.to_owned(), port.unwrap_or(default(url.scheme)).to_owned())
    };
    match (from.scheme, to.scheme) {
        (Scheme::Http, Scheme::Https) => {
            place(from) == (from.host_and_port().0.to_owned(), "80".to_owned())
                && place(to) == (from.host_and_port().0.to_owned(), "443".to_owned())
        }
        (a, b) => a == b && place(from) == place(to),
    }
}

/// Returns the body of an answer that is what was asked for.
fn accept(
    attempt: &Attempt,
    response: Response<Body>,
    media_type: &str,
) -> Result<BodyReader<'static>, FetchError> {
    let status = response.status();
    let answered = |failure| attempt.error(failure, format_args!("it answered {status}"));
    // What answers with another status may be a proxy whose timeout is over: the server behind it goes on.
    if (status.is_redirection() || status.is_client_error())
        && status != StatusCode::REQUEST_TIMEOUT
    {
        attempt.note_refused();
    }
    match status.as_u16() {
        200 => {}
        401 | 403 => return Err(answered(FetchFailure::AuthenticationFailed)),
        404 | 410 => return Err(answered(FetchFailure::RepositoryNotFound)),
        300..=399 => return Err(answered(FetchFailure::RedirectRefused)),
        407 => return Err(answered(FetchFailure::ConnectFailed)),
        _ => return Err(answered(FetchFailure::Other)),
    }
    let body = response.into_body();
    if body.mime_type() == Some(media_type) {
        Ok(body.into_reader())
    } else {
        let detail = "what answers there does not speak git's smart protocol";
        Err(attempt.error(FetchFailure::RepositoryNotFound, detail))
    }
}

/// Tells an error of a request apart.
pub(super) fn tell(attempt: &Attempt, error: ureq::Error) -> FetchError {
    use ureq::Error;
    let failure = match &error {
        Error::Timeout(_) => return attempt.timed_out(),
        Error::HostNotFound => FetchFailure::DnsFailed,
        Error::Tls(_) | Error::Rustls(_) | Error::Pem(_) | Error::TlsRequired => {
            FetchFailure::TlsFailed
        }
        Error::BadUri(_) | Error::InvalidProxyUrl | Error::Http(_) => FetchFailure::InvalidSettings,
        Error::Io(error) => failure_of(error),
        _ => FetchFailure::ConnectFailed,
    };
    match failure {
        FetchFailure::Timeout => attempt.timed_out(),
        _ => attempt.error(failure, error),
    }
}

fn failure_of(error: &io::Error) -> FetchFailure {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => FetchFailure::Timeout,
        // So rustls tells of a certificate and of a peer that speaks no TLS.
        io::ErrorKind::InvalidData => FetchFailure::TlsFailed,
        // The resolver of the system has no kind of its own.
        _ if error.to_string().starts_with("failed to lookup address") => FetchFailure::DnsFailed,
        _ => FetchFailure::ConnectFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::{MirrorOptions, Remote};

    #[test]
    fn redirects_stay_on_the_host() {
        let refused = Err(FetchFailure::RedirectRefused);
        for (from, location, expected) in [
            ("https://h/a", "/b/info/refs?service=git-upload-pack", Ok("https://h/b")),
            (
                "https://h/a",
                "https://H:443/b/info/refs?service=git-upload-pack",
                Ok("https://h:443/b"),
            ),
            ("http://h/a", "https://h/a/info/refs?service=git-upload-pack", Ok("https://h/a")),
            ("https://h/a", "https://u:p@h/b/info/refs?service=git-upload-pack", Ok("https://h/b")),
            ("https://h/a", "http://h/a/info/refs?service=git-upload-pack", refused),
            ("https://h/a", "https://evil/a/info/refs?service=git-upload-pack", refused),
            ("https://h/a", "//evil/a/info/refs?service=git-upload-pack", refused),
            ("https://h/a", "https://h:444/a/info/refs?service=git-upload-pack", refused),
            ("http://h:81/a", "https://h/a/info/refs?service=git-upload-pack", refused),
            ("https://h/a", "https://h@evil/a/info/refs?service=git-upload-pack", refused),
            ("https://h/a", "/users/sign_in?token=secret", refused),
            ("https://h/a", "/users/c2VjcmV0/secret", refused),
            ("https://h/a", "file:///etc/info/refs?service=git-upload-pack", refused),
        ] {
            let remote = Remote::parse(from).unwrap();
            let attempt = Attempt::push(&remote, &MirrorOptions::default());
            attempt.note_secrets(&["secret"]);
            let headers = HeaderMap::from_iter([(header::LOCATION, location.parse().unwrap())]);
            let url = redirected(&attempt, remote.url().unwrap(), "git-upload-pack", &headers);
            if let Err(error) = &url {
                let is_shown = |it| error.message.contains(it);
                assert!(!is_shown("secret") && !is_shown("c2VjcmV0"), "{error}");
            }
            let shown = url.map(|url| url.to_string()).map_err(|error| error.failure);
            assert_eq!(shown, expected.map(str::to_owned), "{from} {location}");
        }
    }
}
