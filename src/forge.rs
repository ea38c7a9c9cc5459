//! The forge that hosts the repository: it gets commit statuses and pull requests.

mod call;
mod error;
mod merged;
mod pull_request;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use ureq::http::Response;
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

use crate::config::{CredentialError, read_authorities, read_secret, without_secrets};
use error::FailedAnswer;

pub use call::{Call, CommitStatus, Provider, StatusState};
pub use error::{ForgeError, RetryScope};
pub use merged::{ForgePages, MergedPullRequest, PageScheme, merged_pull_request};
pub use pull_request::PullRequest;

/// How many bytes of an answer are read.
const ANSWER_LIMIT: u64 = 1 << 20;

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
                    Ok(answer) => request.address_in(&answer).map(Some).ok_or(refused),
                    Err(_) => Err(refused),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a call and returns the document that comes back.
    fn send(&self, call: impl FnOnce(&str) -> Call) -> Result<Value, ForgeError> {
        let token = read_secret(&self.token_file).map_err(unusable(&self.token_file))?;
        let call = call(token.trim());
        let roots = match &self.ca_file {
            None => RootCerts::WebPki,
            Some(path) => {
                RootCerts::Specific(Arc::new(read_authorities(path).map_err(unusable(path))?))
            }
        };
        let agent: Agent = Agent::config_builder()
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            // A secret must not follow a redirect.
            .max_redirects(0)
            .user_agent(concat!("clade/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        let mut response =
            request(&agent, &call).map_err(|error| ForgeError::Later(reason(&error)))?;
        let status = response.status();
        let headers = response.headers();
        let header = |name| headers.get(name).and_then(|it| it.to_str().ok()).map(shorten_header);
        let (location, retry_after) = (header("Location"), header("Retry-After"));
        let calls_left = header("X-RateLimit-Remaining");
        let text = response
            .body_mut()
            .with_config()
            .limit(ANSWER_LIMIT)
            .read_to_string()
            .map_err(|error| ForgeError::Later(error.to_string()))?;
        if status.is_success() {
            // Some say nothing more. What is not JSON comes from a proxy, and the forge has taken nothing.
            return match text.trim() {
                "" => Ok(Value::Null),
                text => serde_json::from_str(text).map_err(|_| {
                    ForgeError::Later(format!("it answers {status} with something else than JSON"))
                }),
            };
        }
        if let Some(location) = location.filter(|_| status.is_redirection()) {
            // Without a host it is a path, whose query may hold a secret as well.
            let location = location.split(['?', '#']).next().map(without_secrets);
            let location = location.unwrap_or_default();
            let said = format!(
                "it redirects to {location}, which is not followed: correct `--forge-url` or `--forge-repository`"
            );
            return Err(ForgeError::Refused { status: status.as_u16(), said });
        }
        let said: String = text.chars().filter(|it| !it.is_control()).take(200).collect();
        Err(FailedAnswer { status: status.as_u16(), retry_after, calls_left, said }.error())
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

/// Returns why there is no answer, without the URL.
fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::BadUri(_) => "`--forge-url` is not a URL".to_owned(),
        error => error.to_string(),
    }
}

fn shorten_header(text: &str) -> String {
    text.chars().take(200).collect()
}

fn unusable(path: &Path) -> impl Fn(CredentialError) -> ForgeError + '_ {
    move |error| ForgeError::File { path: path.to_owned(), detail: error.to_string() }
}
