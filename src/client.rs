//! HTTP client of daemons, `PuppetDB` and Puppet Server.
//!
//! Every request has a deadline, and every answer a limit of bytes. Redirects are not followed, since a
//! token must not leave for another host.

mod advice;
mod certificates;
mod connect;
mod early_close;
mod error;
mod identity;
mod list;
mod nodes;
mod resolver;
mod socket;

use jiff::Timestamp;
use serde_json::Value;
use ureq::{Agent, Body, RequestBuilder, http};

use advice::Hints;
use certificates::Certificates;

pub use connect::Timeouts;
pub use error::ClientError;
pub use identity::{Identity, is_private};
pub use list::Each;
use list::ListFault;
pub use nodes::{NodeEntry, PAGE_NODES, read_entry, read_page, read_pages};

/// A client of one service.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    /// The prefix of request paths.
    base: String,
    /// The URL without its secrets, for messages.
    name: String,
    /// The address of the proxy between, without its secrets.
    proxy: Option<String>,
    token: Option<String>,
    certificates: Certificates,
    advice: Hints,
}

/// The answer of a service as text.
#[derive(Debug)]
pub struct TextReply {
    /// The status.
    pub status: http::StatusCode,
    /// The commit that answered; daemons alone name one.
    pub commit: Option<String>,
    /// The version of the document.
    pub etag: Option<String>,
    /// The body.
    pub text: String,
}

/// The answer of a service as JSON.
#[derive(Debug)]
pub struct JsonReply {
    /// The status.
    pub status: http::StatusCode,
    /// The body.
    pub body: Value,
    advice: Hints,
}

/// The most bytes of an answer: pages of nodes with their facts are large.
const ANSWER_BYTES: u64 = 256 << 20;

/// The most bytes of a list, which is used while it arrives: a page of the largest nodes has 8 GiB.
const LIST_BYTES: u64 = 16 << 30;

/// The most bytes of an error.
const REFUSAL_BYTES: u64 = 1 << 20;

impl Client {
    /// Makes errors say what a person can try.
    #[must_use]
    pub fn with_advice(self) -> Self {
        Self { advice: Hints::Given, ..self }
    }

    /// Returns the URL of the service without its secrets.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends a GET request with additional headers.
    ///
    /// # Errors
    ///
    /// Returns an error if no answer arrives in time.
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Result<TextReply, ClientError> {
        let mut request = self.authenticated(self.agent.get(format!("{}{path}", self.base)));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.reply(request.call())
    }

    /// Sends a GET request for a JSON document.
    ///
    /// # Errors
    ///
    /// Returns an error if no answer arrives in time, or one that is not JSON.
    pub fn get_json(&self, path: &str) -> Result<JsonReply, ClientError> {
        self.json(path, &self.get(path, &[])?)
    }

    /// Sends a GET request for a JSON document; returns the commit that answered as well.
    ///
    /// # Errors
    ///
    /// Returns an error if no answer arrives in time, or one that is not JSON.
    pub fn get_json_of_commit(
        &self,
        path: &str,
    ) -> Result<(Option<String>, JsonReply), ClientError> {
        let mut reply = self.get(path, &[])?;
        let commit = reply.commit.take();
        Ok((commit, self.json(path, &reply)?))
    }

    /// Sends a POST request with a JSON document.
    ///
    /// # Errors
    ///
    /// Returns an error if no answer arrives in time.
    pub fn post(&self, path: &str, body: &str) -> Result<TextReply, ClientError> {
        let request = self.agent.post(format!("{}{path}", self.base));
        let request = self.authenticated(request).header("Content-Type", "application/json");
        self.reply(request.send(body))
    }

    /// Sends a POST request with a JSON document for a JSON document.
    ///
    /// # Errors
    ///
    /// Returns an error if no answer arrives in time, or one that is not JSON.
    pub fn post_json(&self, path: &str, body: &str) -> Result<JsonReply, ClientError> {
        self.json(path, &self.post(path, body)?)
    }

    /// Requests a list, by POST where there is a body, and passes each element on while the list
    /// arrives; returns how many elements it has. No element may have more bytes than `largest`.
    ///
    /// # Errors
    ///
    /// Returns an error if no list arrives in time, or `each` fails.
    pub fn list(
        &self,
        path: &str,
        body: Option<&str>,
        largest: u64,
        each: Each<'_>,
    ) -> Result<usize, ClientError> {
        let url = format!("{}{path}", self.base);
        let json = ("Content-Type", "application/json");
        let response = match body {
            None => self.authenticated(self.agent.get(url)).call(),
            Some(body) => {
                self.authenticated(self.agent.post(url)).header(json.0, json.1).send(body)
            }
        };
        let mut response = self.connected(response)?;
        if !response.status().is_success() {
            let reply = self.read(response)?;
            let is_refusal = refuses_request(reply.status);
            let error = match self.json(path, &reply).and_then(JsonReply::document) {
                Err(error) => error,
                Ok(_) => ClientError::Answer(format!("`{}{path}` has no list", self.name)),
            };
            return Err(if is_refusal { ClientError::Refused(error.to_string()) } else { error });
        }
        let text = response.body_mut().with_config().limit(LIST_BYTES).reader();
        let unusable =
            |reason: String| format!("the answer of `{}` cannot be used: {reason}", self.name);
        list::read(text, largest, each).map_err(|fault| match fault {
            ListFault::Element(reason) => ClientError::Element(unusable(reason)),
            ListFault::Whole(reason) => ClientError::Answer(unusable(reason)),
        })
    }

    fn authenticated<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.token {
            Some(token) => request.header("X-Authentication", token),
            None => request,
        }
    }

    fn reply(
        &self,
        response: Result<http::Response<Body>, ureq::Error>,
    ) -> Result<TextReply, ClientError> {
        let response = self.connected(response)?;
        self.read(response)
    }

    /// Returns the response, or why there is none.
    fn connected(
        &self,
        response: Result<http::Response<Body>, ureq::Error>,
    ) -> Result<http::Response<Body>, ClientError> {
        response.map_err(|error| {
            let problem = self.certificates.explain(&error, &self.name, Timestamp::now());
            let reason = problem.unwrap_or_else(|| match &error {
                // The library repeats the whole URL.
                ureq::Error::BadUri(_) => "it is not a URL".to_owned(),
                // Whether the service is running is not known.
                error if self.proxy.is_some() => error.to_string(),
                error => format!("{error}{}", self.advice.on_connection(error, &self.base)),
            });
            let reason = match &self.proxy {
                Some(proxy) => format!("through the proxy `{proxy}`: {reason}"),
                None => reason,
            };
            ClientError::Unreachable { name: self.name.clone(), reason }
        })
    }

    fn read(&self, mut response: http::Response<Body>) -> Result<TextReply, ClientError> {
        let header = |name: &str| {
            let value = response.headers().get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        let (commit, etag) = (header("X-Clade-Commit"), header("ETag"));
        let is_success = response.status().is_success();
        let limit = if is_success { ANSWER_BYTES } else { REFUSAL_BYTES };
        // A proxy refuses in any encoding.
        let body = response.body_mut().with_config().limit(limit).lossy_utf8(!is_success);
        let text = body.read_to_string().map_err(|error| match error {
            ureq::Error::BodyExceedsLimit(most) => {
                ClientError::TooLarge { name: self.name.clone(), most }
            }
            error => {
                ClientError::Answer(format!("the answer of `{}` broke off: {error}", self.name))
            }
        })?;
        Ok(TextReply { status: response.status(), commit, etag, text })
    }

    fn json(&self, path: &str, reply: &TextReply) -> Result<JsonReply, ClientError> {
        let (url, status) = (format!("{}{path}", self.name), reply.status);
        if status.is_redirection() {
            return Err(ClientError::Answer(format!(
                "`{url}` answers {status}, and redirects are not followed: correct the URL"
            )));
        }
        let body = serde_json::from_str(&reply.text).map_err(|_| {
            let hint = self.advice.on_other_answer(&url);
            ClientError::Answer(format!(
                "`{url}` answers {status} with a body that is not JSON{hint}"
            ))
        })?;
        Ok(JsonReply { status, body, advice: self.advice })
    }
}

/// Whether a status says that this very request cannot be answered, and another one may be. `PuppetDB` answers a query
/// that it cannot execute with 500. Any other error is one of the service, a proxy or a permission.
fn refuses_request(status: http::StatusCode) -> bool {
    use http::StatusCode as Status;
    matches!(
        status,
        Status::BAD_REQUEST
            | Status::PAYLOAD_TOO_LARGE
            | Status::URI_TOO_LONG
            | Status::UNPROCESSABLE_ENTITY
            | Status::INTERNAL_SERVER_ERROR
    )
}

impl JsonReply {
    /// Returns the document.
    ///
    /// # Errors
    ///
    /// Returns the error that the service answered with in its place.
    pub fn document(self) -> Result<Value, ClientError> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let message = self.body.get("msg").and_then(Value::as_str).unwrap_or("no reason");
        let path = self.body.get("details").filter(|_| self.kind() == Some("not-found"));
        let hint = self.advice.on_status(self.status, path.and_then(Value::as_str));
        let status = self.status;
        Err(ClientError::Answer(format!("the daemon answers {status}: {message}{hint}")))
    }

    /// Returns the kind of an error.
    pub fn kind(&self) -> Option<&str> {
        self.body.get("kind")?.as_str()
    }
}
