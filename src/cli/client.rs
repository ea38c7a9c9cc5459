//! What commands that ask a daemon or another service share: their flags, and documents of daemons.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::output::Output;
use crate::client::{Client, Identity, JsonReply, Timeouts};
use crate::config::without_secrets;
use crate::http::types::ErrorKind;

/// The daemon that gets requests by default.
pub(super) const DEFAULT_SERVER: &str = "http://127.0.0.1:4433";

/// Returns the daemon that the environment names, for commands that work without one, too: clap would take
/// the variable for a flag, which excludes those that choose a repository.
pub(super) fn server_of_environment() -> Option<String> {
    std::env::var("CLADE_SERVER").ok().filter(|it| !it.is_empty())
}

/// The daemon, and the credentials for it.
#[derive(Clone, Debug, Args)]
pub(super) struct DaemonArgs {
    /// The daemon: a URL, or the path of its unix socket; of several, the first
    #[arg(long, value_name = "URL", env = "CLADE_SERVER", default_value = DEFAULT_SERVER)]
    server: String,
    #[command(flatten)]
    identity: IdentityArgs,
}

/// The credentials for a service, and the authorities that verify it.
#[derive(Clone, Debug, Args)]
pub(super) struct IdentityArgs {
    /// The authorities to verify the service with, as PEM [default: the public authorities]
    #[arg(long, value_name = "FILE", env = "CLADE_TLS_CA")]
    tls_ca: Option<PathBuf>,
    /// The client certificate, such as the Puppet certificate of this host
    #[arg(long, value_name = "FILE", env = "CLADE_TLS_CERT", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the client certificate
    #[arg(long, value_name = "FILE", env = "CLADE_TLS_KEY", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The file with the token
    #[arg(long, value_name = "FILE", env = "CLADE_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Send the token unencrypted over `http://` to other hosts, too
    #[arg(long, env = "CLADE_INSECURE_HTTP")]
    insecure_http: bool,
}

/// The output format of what a daemon answers.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum AnswerFormat {
    /// For people
    Human,
    /// The JSON document of the daemon
    Json,
}

impl DaemonArgs {
    /// Returns a client of the daemon; no request takes longer than `timeout`.
    pub(super) fn client(&self, timeout: Duration, output: &mut Output) -> Result<Client> {
        self.identity.client_of_first(&self.server, timeout, output)
    }
}

impl IdentityArgs {
    /// Returns the credentials.
    pub(super) fn identity(&self) -> Identity {
        Identity {
            tls_ca: self.tls_ca.clone(),
            tls_cert: self.tls_cert.clone(),
            tls_key: self.tls_key.clone(),
            token_file: self.token_file.clone(),
            insecure_http: self.insecure_http,
        }
    }

    /// Returns a client of the first of some daemons for a person: errors say what to try.
    pub(super) fn client_of_first(
        &self,
        servers: &str,
        timeout: Duration,
        output: &mut Output,
    ) -> Result<Client> {
        let first = servers.split(',').next().unwrap_or_default();
        output.note(&format!("asking {}", without_secrets(first)));
        let timeouts = Timeouts::within(timeout);
        Ok(Client::new(first, &self.identity(), timeouts)?.with_advice())
    }
}

/// A document of a daemon.
pub(super) struct Document<T> {
    /// As the daemon sent it, which may say more than this program can read.
    pub(super) sent: Value,
    /// What this program reads in it.
    pub(super) read: T,
}

impl<T: DeserializeOwned> Document<T> {
    /// Returns the document of a reply.
    ///
    /// # Errors
    ///
    /// Returns the error that the daemon answers with, or that the document is of something else.
    pub(super) fn of(reply: JsonReply, daemon: &Client) -> Result<Self> {
        let sent = reply.document()?;
        let read = read_object(&sent);
        let read = read.with_context(|| format!("`{}` is not a daemon", daemon.name()))?;
        Ok(Self { sent, read })
    }
}

/// Reads an object. A list of the fields' values, which the derived readers accept as well, is not one.
pub(super) fn read_object<T: DeserializeOwned>(document: &Value) -> Result<T> {
    document.as_object().context("expected an object")?;
    read_value(document)
}

/// Reads a value by way of its text: serde reads a number of a value as one of the machine, so that `-0` would be 0.
pub(super) fn read_value<T: DeserializeOwned>(value: &Value) -> Result<T> {
    Ok(serde_json::from_str(&serde_json::to_string(value)?)?)
}

/// Returns the kind of an error; none for a document, or for a kind of a later daemon.
pub(super) fn error_kind(reply: &JsonReply) -> Option<ErrorKind> {
    ErrorKind::of(reply.kind()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::types::{BlamedValue, Explanation};
    use crate::model::Map;

    const NUMBERS: &str = "[-0,1.00,123456789012345678901234567890,1e+400]";

    #[test]
    fn numbers_of_a_daemon_are_read_as_they_stand() {
        let numbers: Value = serde_json::from_str(NUMBERS).unwrap();
        let none: Map<String, Value> = Map::new();
        let explanation = json!({
            "node_as_received": {"name": "n", "fact": {"n": numbers}, "trusted": {}},
            "match_explanations": {}, "leaf_groups": {}, "inherited_classifications": {},
            "individual_classification": {
                "classes": {}, "variables": {"n": numbers}, "config_data": none,
            },
        });
        let read: Explanation = read_object(&explanation).unwrap();
        assert_eq!(read.node_as_received.fact["n"].to_string(), NUMBERS);
        assert_eq!(read.individual_classification.variables["n"].to_string(), NUMBERS);
        let commit = json!({
            "id": "0123456789012345678901234567890123456789", "author": "a", "subject": "s",
            "time": "2026-11-20T12:00:00Z",
        });
        let blamed = json!({
            "key": "variables.n", "value": numbers, "group": null, "group_id": null, "file": null,
            "line": null, "commit": commit, "since": "2026-11-20T12:00:00Z",
        });
        let read: BlamedValue = read_value(&blamed).unwrap();
        assert_eq!(read.value.to_string(), NUMBERS);
    }
}
