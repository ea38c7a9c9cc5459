//! Asking daemons, one after the other.
#![expect(clippy::disallowed_methods, reason = "time is limited")]

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use serde_json::Value;

use super::health::Health;
use crate::cli::output::one_line;
use crate::client::{Client, Identity, Reply, Timeouts};
use crate::document::{self, Limits};

/// What an answer may cost.
const LIMITS: Limits =
    Limits { file_bytes: 16 << 20, depth: 200, alias_nodes: 0, ..Limits::DEFAULT };

/// How many daemons are asked: one, and another if it cannot answer.
const ATTEMPTS: usize = 2;

/// What is asked, of whom.
pub(super) struct Question<'a> {
    pub(super) servers: &'a [String],
    pub(super) identity: &'a Identity,
    pub(super) node: &'a str,
    pub(super) body: &'a str,
    pub(super) connect: Duration,
    pub(super) deadline: Instant,
}

/// What a daemon answers.
pub(super) enum Answer {
    /// The ENC document.
    Document { text: String, commit: Option<String> },
    /// That this node cannot be classified, and why: another daemon would say the same.
    Refused(String),
}

impl Question<'_> {
    /// Asks until a daemon answers.
    pub(super) fn ask(&self, health: &mut Health) -> Result<Answer> {
        let mut order = health.order(self.servers);
        order.truncate(ATTEMPTS);
        let mut reasons = Vec::new();
        for (done, server) in order.iter().enumerate() {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                reasons.push("the time is up".to_owned());
                break;
            }
            // One that hangs must leave time for the other.
            let total = if done + 1 < order.len() { left / 2 } else { left };
            match self.ask_one(server, Timeouts { connect: self.connect.min(total), total }) {
                Ok(answer) => {
                    health.is_well(server);
                    return Ok(answer);
                }
                Err(error) => {
                    health.has_failed(server);
                    reasons.push(one_line(&error));
                }
            }
        }
        Err(anyhow!("{}", reasons.join("; ")))
    }

    fn ask_one(&self, server: &str, timeouts: Timeouts) -> Result<Answer> {
        let daemon = Client::new(server, self.identity, timeouts)?;
        judge(daemon.post(&format!("/enc/{}", self.node), self.body)?, server)
    }
}

/// Tells an answer from everything else that may come in its place.
fn judge(reply: Reply, server: &str) -> Result<Answer> {
    let body = read_any(&reply.text);
    let text = |key: &str| body.as_ref().and_then(|it| it.get(key)).and_then(Value::as_str);
    if reply.status.is_success() {
        let is_object =
            |key| body.as_ref().and_then(|it| it.get(key)).is_some_and(Value::is_object);
        if !is_object("classes") || !is_object("parameters") {
            bail!("`{server}` answers {} with an invalid ENC document", reply.status);
        }
        return Ok(Answer::Document { text: reply.text, commit: reply.commit });
    }
    let message = text("msg").unwrap_or("no reason");
    match text("kind") {
        Some("classification-conflict" | "rule-evaluation-error" | "not-found") => {
            Ok(Answer::Refused(message.to_owned()))
        }
        _ => bail!("`{server}` answers {}: {message}", reply.status),
    }
}

/// Returns the document that a server's words are taken for, if they are.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub fn fuzz_answer(status: u16, text: &str) -> Option<String> {
    let status = ureq::http::StatusCode::from_u16(status).ok()?;
    let reply = Reply { status, commit: None, etag: None, text: text.to_owned() };
    match judge(reply, "https://clade.example").ok()? {
        Answer::Document { text, .. } => Some(text),
        Answer::Refused(_) => None,
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
