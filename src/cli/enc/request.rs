//! Requests to daemons, one after the other.
#![expect(clippy::disallowed_methods, reason = "time is limited")]

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use serde_json::Value;
use ureq::http::StatusCode;

use super::health::DaemonHealth;
use crate::classification::SEE_DETAILS;
use crate::cli::client::read_object;
use crate::cli::output::one_line;
use crate::cli::shell::word_of_shell;
use crate::client::{Client, Identity, TextReply, Timeouts};
use crate::config::without_secrets;
use crate::document::{self, Limits};
use crate::http::types::{self, EncDocument, ErrorKind};

/// What an answer may cost.
const LIMITS: Limits =
    Limits { file_bytes: 16 << 20, depth: 200, alias_nodes: 0, ..Limits::DEFAULT };

/// How many daemons get the request: one, and another if it cannot answer.
const ATTEMPTS: usize = 2;

/// A request for the ENC document of a node.
pub(super) struct EncRequest<'a> {
    pub(super) servers: &'a [String],
    pub(super) identity: &'a Identity,
    pub(super) node: &'a str,
    pub(super) body: &'a str,
    /// The body without facts, where there are facts and they are optional: asks for the node by the facts that a
    /// daemon knows.
    pub(super) bare: Option<&'a str>,
    pub(super) connect: Duration,
    pub(super) deadline: Instant,
}

/// What a daemon answers.
pub(super) enum EncAnswer {
    /// The ENC document.
    Document { text: String, commit: Option<String> },
    /// That this node cannot be classified, and why: another daemon would say the same.
    Refused { kind: ErrorKind, reason: String },
}

/// Why a daemon does not answer.
struct EncFailure {
    reason: anyhow::Error,
    refuses_facts: bool,
}

impl EncRequest<'_> {
    /// Sends the request to one daemon after another until one answers. Where none does, those that refuse the facts
    /// are asked for what a last good answer must not hide.
    pub(super) fn send(&self, health: &mut DaemonHealth) -> Result<EncAnswer> {
        let mut order = health.order(self.servers);
        order.truncate(ATTEMPTS);
        let (mut reasons, mut refusing) = (Vec::new(), Vec::new());
        for (done, server) in order.iter().enumerate() {
            let Some(timeouts) = self.share_of_time(order.len() - done) else {
                reasons.push("timeout".to_owned());
                break;
            };
            match self.send_to(server, timeouts) {
                Ok(answer) => {
                    health.is_well(server);
                    return Ok(answer);
                }
                Err(EncFailure { reason, refuses_facts }) => {
                    health.has_failed(server);
                    reasons.push(one_line(&reason));
                    refusing.extend(refuses_facts.then_some(*server));
                }
            }
        }
        self.find_refusal(&refusing).ok_or_else(|| anyhow!("{}", reasons.join("; ")))
    }

    /// Returns the time that one of so many daemons gets, if any is left: one that hangs must leave time for the others.
    fn share_of_time(&self, daemons: usize) -> Option<Timeouts> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let total = left / u32::try_from(daemons).unwrap_or(u32::MAX).max(1);
        (!total.is_zero()).then(|| Timeouts { connect: self.connect.min(total), total })
    }

    fn send_to(&self, server: &str, timeouts: Timeouts) -> Result<EncAnswer, EncFailure> {
        let reply = self.post(server, &format!("/enc/{}", self.node), self.body, timeouts);
        let reply = reply.map_err(|reason| EncFailure { reason, refuses_facts: false })?;
        let refuses_facts =
            matches!(reply.status, StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE);
        let answer = judge(reply, server).map_err(|reason| EncFailure { reason, refuses_facts })?;
        Ok(self.with_own_advice(answer, server))
    }

    /// Returns the conflict, or the error of a rule, that one of these daemons finds by the facts that it knows. It keeps
    /// nothing of this question, and refuses it where it knows no facts: a rule may match just because a fact is
    /// missing. Any other answer is not that of the facts that it refused.
    fn find_refusal(&self, servers: &[&str]) -> Option<EncAnswer> {
        let bare = self.bare?;
        servers.iter().enumerate().find_map(|(done, server)| {
            let timeouts = self.share_of_time(servers.len() - done)?;
            let reply = self.post(server, &format!("/hiera/{}", self.node), bare, timeouts).ok()?;
            match judge(reply, server).ok()? {
                refused @ EncAnswer::Refused {
                    kind: ErrorKind::ClassificationConflict | ErrorKind::RuleEvaluationError,
                    ..
                } => Some(self.with_own_advice(refused, server)),
                EncAnswer::Refused { .. } | EncAnswer::Document { .. } => None,
            }
        })
    }

    fn post(&self, server: &str, path: &str, body: &str, timeouts: Timeouts) -> Result<TextReply> {
        Ok(Client::new(server, self.identity, timeouts)?.post(path, body)?)
    }

    fn with_own_advice(&self, answer: EncAnswer, server: &str) -> EncAnswer {
        match answer {
            EncAnswer::Refused { kind, reason } => {
                let reason = match reason.strip_suffix(SEE_DETAILS) {
                    Some(report) => {
                        with_advice(report, &[self.node, "--server", &without_secrets(server)])
                    }
                    None => reason,
                };
                EncAnswer::Refused { kind, reason }
            }
            document @ EncAnswer::Document { .. } => document,
        }
    }
}

/// Adds to what a conflict is where its values are shown: who reads this line, such as in the log of an agent, has no
/// `details`.
pub(super) fn with_advice(report: &str, arguments: &[&str]) -> String {
    let words: Vec<String> = arguments.iter().map(|it| word_of_shell(it)).collect();
    format!("{report} `clade explain {}` shows the values.", words.join(" "))
}

/// Accepts an ENC document, and the errors that every daemon would answer for the node.
fn judge(reply: TextReply, server: &str) -> Result<EncAnswer> {
    let body = read_any(&reply.text).unwrap_or_default();
    if reply.status.is_success() {
        return match read_object::<EncDocument>(&body) {
            Ok(_) => Ok(EncAnswer::Document { text: reply.text, commit: reply.commit }),
            Err(_) => bail!("`{server}` answers {} with an invalid ENC document", reply.status),
        };
    }
    let Ok(error) = read_object::<types::Error>(&body) else {
        bail!("`{server}` answers {}: no reason", reply.status);
    };
    match error.kind() {
        Some(
            kind @ (ErrorKind::ClassificationConflict
            | ErrorKind::RuleEvaluationError
            | ErrorKind::NotFound),
        ) => Ok(EncAnswer::Refused { kind, reason: error.msg }),
        _ => bail!("`{server}` answers {}: {}", reply.status, error.msg),
    }
}

/// Returns the document that a server's words are taken for, if they are.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub fn fuzz_answer(status: u16, text: &str) -> Option<String> {
    let status = StatusCode::from_u16(status).ok()?;
    let reply = TextReply { status, commit: None, etag: None, text: text.to_owned() };
    match judge(reply, "https://clade.example").ok()? {
        EncAnswer::Document { text, .. } => Some(text),
        EncAnswer::Refused { .. } => None,
    }
}

/// Reads JSON, or YAML where it is not both.
fn read_any(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let contents = document::read(text.as_bytes(), &LIMITS);
    let document = contents.documents.first().filter(|_| contents.faults.is_empty())?;
    Some(document.to_value())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, text: &str) -> Result<EncAnswer, String> {
        let status = StatusCode::from_u16(status).unwrap();
        let reply = TextReply { status, commit: None, etag: None, text: text.to_owned() };
        judge(reply, "https://clade.example").map_err(|error| error.to_string())
    }

    #[test]
    fn only_an_enc_document_is_an_answer() {
        for text in [
            r#"{"classes": {}, "parameters": {}}"#,
            r#"{"classes": {"a": {"b": 1}}, "parameters": {"c": [1]}, "environment": "production", "later": 1}"#,
            "classes: {}\nparameters: {}\n",
        ] {
            assert!(matches!(answer(200, text), Ok(EncAnswer::Document { .. })), "{text}");
        }
        for text in [
            "",
            "<html>",
            "[{}, {}, \"production\"]",
            r#"{"classes": {}}"#,
            r#"{"classes": [], "parameters": {}}"#,
            r#"{"classes": {}, "parameters": {}, "environment": 1}"#,
        ] {
            let error = answer(200, text).err().unwrap();
            assert!(error.ends_with("answers 200 OK with an invalid ENC document"), "{error}");
        }
    }

    #[test]
    fn errors_of_the_node_end_the_search_and_those_of_a_daemon_do_not() {
        for (status, text, refused) in [
            (500, r#"{"kind": "classification-conflict", "msg": "M", "details": {}}"#, true),
            (500, r#"{"kind": "rule-evaluation-error", "msg": "M"}"#, true),
            (404, r#"{"kind": "not-found", "msg": "M"}"#, true),
            (503, r#"{"kind": "no-snapshot", "msg": "M"}"#, false),
            (500, r#"{"kind": "of-a-later-daemon", "msg": "M"}"#, false),
            (404, "<html>", false),
        ] {
            match answer(status, text) {
                Ok(EncAnswer::Refused { reason, .. }) => {
                    assert!(refused && reason == "M", "{text}");
                }
                Ok(EncAnswer::Document { .. }) => panic!("{text}"),
                Err(error) => assert!(!refused, "{error}"),
            }
        }
    }
}
