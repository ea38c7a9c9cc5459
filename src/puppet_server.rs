//! Puppet Server as a source of classes.

use std::time::Duration;

use serde_json::Value;

use crate::client::{Client, ClientError, Identity, TextReply, Timeouts};
use crate::config::without_secrets;
use crate::model::EnvironmentName;
use crate::puppet::{Published, read_published};

/// How long a connection to a Puppet Server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A Puppet Server.
#[derive(Clone, Debug)]
pub struct PuppetServer {
    url: String,
    identity: Identity,
}

/// The classes of an environment.
#[derive(Debug)]
pub enum ClassList {
    /// They are those of the version that the caller knows.
    Unchanged,
    /// All of them, and their version.
    Published(Published, Option<String>),
}

/// The classes of an environment cannot be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassListError {
    /// No answer arrives.
    #[error("{0}")]
    Unreachable(String),
    /// The answer cannot be used.
    #[error("{message}")]
    Unexpected {
        /// What is wrong with it, and what helps.
        message: String,
        /// The URL of the request.
        url: String,
        /// The status of the answer; 404 if there is no such environment.
        status: u16,
        /// Its body.
        body: String,
    },
}

impl PuppetServer {
    /// Returns the Puppet Server at a URL.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not valid, or the credentials cannot be used with it.
    pub fn new(url: String, identity: Identity) -> Result<Self, ClientError> {
        Client::new(&url, &identity, Timeouts::within(CONNECT_TIMEOUT))?;
        Ok(Self { url, identity })
    }

    /// Returns where the classes of an environment are, for messages.
    pub fn classes_url(&self, environment: &EnvironmentName) -> String {
        format!("{}{}", without_secrets(self.url.trim_end_matches('/')), path_of(environment))
    }

    /// Fetches the classes of an environment, unless they are those of the `known` version. Blocking.
    ///
    /// # Errors
    ///
    /// Returns an error if no answer arrives within `timeout`, or one that has no classes.
    pub fn classes(
        &self,
        environment: &EnvironmentName,
        known: Option<&str>,
        timeout: Duration,
    ) -> Result<ClassList, ClassListError> {
        let timeouts = Timeouts { connect: CONNECT_TIMEOUT.min(timeout), total: timeout };
        // Certificates are read for every request, since they are renewed.
        let client = Client::new(&self.url, &self.identity, timeouts)?;
        let path = path_of(environment);
        let mut headers = vec![("Accept", "application/json")];
        headers.extend(known.map(|etag| ("If-None-Match", etag)));
        let reply = client.get(&path, &headers)?;
        let unexpected = |message: String, body: String| ClassListError::Unexpected {
            message,
            url: self.classes_url(environment),
            status: reply.status.as_u16(),
            body,
        };
        if reply.status == 304 && known.is_some() {
            return Ok(ClassList::Unchanged);
        }
        if reply.status != 200 {
            return Err(unexpected(refusal(&reply, environment), reply.text));
        }
        let Ok(answer) = serde_json::from_str::<Value>(&reply.text) else {
            let message = format!("`{}` answers with a body that is not JSON", client.name());
            return Err(unexpected(message, reply.text));
        };
        match read_published(&answer) {
            Some(published) => Ok(ClassList::Published(published, reply.etag)),
            None => {
                let message = format!("`{}` answers without a list of classes", client.name());
                Err(unexpected(message, reply.text))
            }
        }
    }
}

impl From<ClientError> for ClassListError {
    fn from(error: ClientError) -> Self {
        Self::Unreachable(error.to_string())
    }
}

impl ClassListError {
    /// Returns whether the server does not know the environment.
    pub fn is_unknown_environment(&self) -> bool {
        matches!(self, Self::Unexpected { status: 404, .. })
    }
}

fn path_of(environment: &EnvironmentName) -> String {
    format!("/puppet/v3/environment_classes?environment={environment}")
}

/// Says why the server refuses, and what helps.
fn refusal(reply: &TextReply, environment: &EnvironmentName) -> String {
    let body: Value = serde_json::from_str(&reply.text).unwrap_or_default();
    let message = ["message", "msg"].iter().find_map(|key| body.get(key)?.as_str());
    let message = message.unwrap_or_else(|| reply.text.lines().next().unwrap_or_default());
    let message = message.trim_end_matches('.');
    let status = reply.status;
    match status.as_u16() {
        403 => format!(
            "the server answers {status}: {message}; allow this certificate in its auth.conf: {{match-request: {{path: \"/puppet/v3/environment_classes\", type: path, method: get}}, allow: \"<certname>\", sort-order: 400, name: \"clade classes\"}}"
        ),
        404 => format!("the server has no environment `{environment}`: {message}"),
        _ => format!("the server answers {status}: {message}"),
    }
}
