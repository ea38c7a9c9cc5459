//! The forge that hosts the repository: it gets commit statuses and pull requests.

mod call;
mod error;
mod merged;
mod pull_request;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use ureq::http::Response;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

use crate::config::{
    CredentialError, SecretMask, proxy_of_environment, read_authorities, read_secret,
    without_secrets,
};
use error::FailedAnswer;

pub use call::{Call, CommitStatus, Provider, StatusState};
pub use error::{ForgeError, RetryScope};
pub use merged::{ForgePages, MergedPullRequest, PageScheme, merged_pull_request};
pub use pull_request::PullRequest;

/// How many bytes of an answer are read.
const ANSWER_LIMIT: u64 = 1 << 20;

/// How many bytes are read of an answer that is not a success.
const FAILURE_LIMIT: u64 = 4096;

/// How long one call may take as a whole.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A repository on a forge, and who we are there.
#[derive(Clone, Debug)]
pub struct Forge {
    /// Whose API it speaks.
    pub provider: Provider,
    /// The base of its API, without a slash at the end.
    pub api: String,
    /// The repository, such as `owner/name`.
    pub repository: String,
    /// The file that holds the token, read again for each call.
    pub token_file: PathBuf,
    /// Certificates to trust instead of those of the public authorities.
    pub ca_file: Option<PathBuf>,
}

impl Forge {
    /// Posts what a commit came to.
    ///
    /// # Errors
    ///
    /// Returns an error if the forge cannot be asked or refuses.
    pub fn post_status(&self, status: &CommitStatus) -> Result<(), ForgeError> {
        match self
            .send(|token| Call::status(self.provider, &self.api, &self.repository, token, status))
        {
            // GitLab rejects a status that it has.
            Err(ForgeError::Refused { status: 400, said })
                if self.provider == Provider::Gitlab
                    && said.contains("Cannot transition status") =>
            {
                Ok(())
            }
            sent => sent.map(drop),
        }
    }

    /// Opens a pull request, unless there is one for the branch, and returns where it is.
    ///
    /// # Errors
    ///
    /// Returns an error if the forge cannot be asked or refuses.
    pub fn open_pull_request(&self, request: &PullRequest) -> Result<Option<String>, ForgeError> {
        let sent =
            self.send(|token| request.call(self.provider, &self.api, &self.repository, token));
        match sent {
            Ok(answer) => Ok(PullRequest::address(&answer)),
            // There may be one for the branch already: forges say so with these, and much else too.
            Err(refused @ ForgeError::Refused { status: 409 | 422, .. }) => {
                let found = self.send(|token| {
                    request.find_call(self.provider, &self.api, &self.repository, token)
                });
                match found {
                    Ok(answer) => request.open_in(&answer).map(PullRequest::address).ok_or(refused),
                    Err(_) => Err(refused),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a call and returns the document that comes back.
    fn send(&self, call: impl FnOnce(&str) -> Call) -> Result<Value, ForgeError> {
        let token = read_secret(&self.token_file).map_err(unusable(&self.token_file))?;
        let token = token.trim();
        let password = token.split_once(':').map_or(token, |(_, password)| password);
        let mask = SecretMask::of([token, password]);
        let call = call(token);
        let mut response = request(&self.agent()?, &call)
            .map_err(|error| ForgeError::Later(mask.hide(&reason(&error))))?;
        let status = response.status();
        if !status.is_success() {
            return Err(failure(response, &mask));
        }
        let text = response
            .body_mut()
            .with_config()
            .limit(ANSWER_LIMIT)
            .read_to_string()
            .map_err(|error| ForgeError::Later(error.to_string()))?;
        // Some say nothing more. What is not JSON comes from a proxy, and the forge has taken nothing.
        match text.trim() {
            "" => Ok(Value::Null),
            text => serde_json::from_str(text).map_err(|_| {
                ForgeError::Later(format!("it answers {status} with something else than JSON"))
            }),
        }
    }

    fn agent(&self) -> Result<Agent, ForgeError> {
        let roots = match &self.ca_file {
            None => RootCerts::WebPki,
            Some(path) => {
                RootCerts::Specific(Arc::new(read_authorities(path).map_err(unusable(path))?))
            }
        };
        let proxy = proxy_of_environment(&self.api)
            .map_err(|error| ForgeError::Later(error.to_string()))?;
        let config = Agent::config_builder()
            .proxy(proxy)
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            // A secret must not follow a redirect.
            .max_redirects(0)
            .user_agent(concat!("clade/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(config.new_agent())
    }
}

/// Sends the request of a call.
fn request(agent: &Agent, call: &Call) -> Result<Response<Body>, ureq::Error> {
    let Some(body) = &call.body else {
        let request = call
            .headers
            .iter()
            .fold(agent.get(&call.url), |it, (name, value)| it.header(*name, value));
        return request.call();
    };
    let request = agent.post(&call.url).header("Content-Type", "application/json");
    let request = call.headers.iter().fold(request, |it, (name, value)| it.header(*name, value));
    request.send(body.to_string())
}

/// Returns the error of an answer that is not a success. Its status says what to do, also where its body cannot be read.
fn failure(mut response: Response<Body>, mask: &SecretMask) -> ForgeError {
    let status = response.status();
    let headers = response.headers();
    let header = |name| headers.get(name).and_then(|it| it.to_str().ok()).map(str::to_owned);
    let (location, retry_after) = (header("Location"), header("Retry-After"));
    let calls_left = header("X-RateLimit-Remaining");
    if let Some(location) = location.filter(|_| status.is_redirection()) {
        // Without a host it is a path, whose query may hold a secret as well.
        let location = location.split(['?', '#']).next().map(without_secrets);
        let location = excerpt(&location.unwrap_or_default(), mask);
        let said = format!(
            "it redirects to {location}, which is not followed: correct `--forge-url` or `--forge-repository`"
        );
        return ForgeError::Refused { status: status.as_u16(), said };
    }
    let mut bytes = Vec::new();
    // What came before an error is enough.
    response.body_mut().as_reader().take(FAILURE_LIMIT).read_to_end(&mut bytes).ok();
    let said = excerpt(&String::from_utf8_lossy(&bytes), mask);
    FailedAnswer { status: status.as_u16(), retry_after, calls_left, said }.error()
}

/// Returns the beginning of what a forge says, on one line and without the secrets that it repeats.
fn excerpt(text: &str, mask: &SecretMask) -> String {
    let line: String = text.chars().filter(|it| !it.is_control()).collect();
    mask.hide(&line).chars().take(200).collect()
}

/// Returns why there is no answer, without the URL.
fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::BadUri(_) => "`--forge-url` is not a URL".to_owned(),
        error => error.to_string(),
    }
}

fn unusable(path: &Path) -> impl Fn(CredentialError) -> ForgeError + '_ {
    move |error| ForgeError::File { path: path.to_owned(), detail: error.to_string() }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the token is in a file")]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use super::*;
    use crate::model::CommitId;

    const TOKEN: &str = "tok-secret-123456";

    /// Posts a status to a forge that answers with some bytes.
    fn answered(provider: Provider, token: &str, answer: Vec<u8>) -> ForgeError {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let api = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::from("-"), 0);
            while !line.trim().is_empty() {
                line.clear();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            // The client may have read enough.
            stream.write_all(&answer).ok();
        });
        let directory = tempfile::tempdir().unwrap();
        let token_file = directory.path().join("token");
        std::fs::write(&token_file, token).unwrap();
        let repository = "o/r".to_owned();
        let forge = Forge { provider, api, repository, token_file, ca_file: None };
        let status = CommitStatus {
            commit: CommitId::from_bytes([0xab; 20]),
            context: "c".to_owned(),
            state: StatusState::Success,
            description: "d".to_owned(),
            link: None,
        };
        let error = forge.post_status(&status).unwrap_err();
        server.join().unwrap();
        error
    }

    fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n");
        [head.as_bytes(), body].concat()
    }

    #[test]
    fn the_status_counts_where_the_body_cannot_be_read() {
        let pause = |seconds| Some(RetryScope::AllCalls(Duration::from_secs(seconds)));
        let later = "Retry-After: 3600\r\n";
        let latin = b"zu viele Anfragen f\xfcr heute".as_slice();
        let cut = "Content-Length: 1000\r\n";
        for (status, headers, body, expected) in [
            ("429 Too Many Requests", later, latin, pause(3600)),
            ("429 Too Many Requests", later, &vec![b'x'; 2 << 20], pause(3600)),
            ("503 Service Unavailable", later, latin, pause(3600)),
            ("401 Unauthorized", cut, b"{", pause(0)),
            ("422 Unprocessable Content", "", latin, None),
            ("302 Found", "Location: /login\r\n", latin, None),
            ("302 Found", "", latin, None),
            ("502 Bad Gateway", cut, latin, Some(RetryScope::ThisCall)),
            ("200 OK", cut, b"{", Some(RetryScope::ThisCall)),
            ("200 OK", "", latin, Some(RetryScope::ThisCall)),
        ] {
            let error = answered(Provider::Github, TOKEN, answer(status, headers, body));
            assert_eq!(error.retry(), expected, "{status} {headers}: {error}");
        }
    }

    #[test]
    fn the_token_is_not_in_what_the_forge_is_quoted_with() {
        let pair = format!("ci:{TOKEN}");
        let basic = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &pair);
        let before_cut = format!("{}{TOKEN}", "x".repeat(190));
        let location = format!("Location: /x/{TOKEN}/y\r\n");
        for (provider, token, status, headers, body) in [
            (Provider::Gitea, TOKEN, "401 Unauthorized", "", format!("bad header: token {TOKEN}")),
            (Provider::Gitea, TOKEN, "422 Unprocessable Content", "", before_cut),
            (Provider::Gitea, TOKEN, "302 Found", &*location, String::new()),
            (Provider::Bitbucket, &*pair, "400 Bad Request", "", format!("not Basic {basic}")),
            (Provider::Bitbucket, &*pair, "500 Internal Server Error", "", format!("not {TOKEN}")),
        ] {
            let error = answered(provider, token, answer(status, headers, body.as_bytes()));
            let said = error.to_string();
            assert!(said.contains('…'), "{said}");
            for secret in ["tok-secr", basic.trim_end_matches('=')] {
                assert!(!said.contains(secret), "{said}");
            }
        }
    }
}
