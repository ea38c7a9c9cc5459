//! `clade status`: what a daemon serves, and what needs attention.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::Exit;
use super::age::age;
use super::client::{AnswerFormat, DaemonArgs};
use super::output::Output;
use crate::diagnostic::visible_up_to;

/// How long the daemon may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest text of a commit or a message that is shown.
const LONGEST: usize = 400;

/// How much of a commit id is shown where the whole is not needed.
const SHORT: usize = 12;

/// Show what a daemon serves: the commit that answers, the newest one, and what needs attention
///
/// Exit status: 0 fine; 1 no commit answers, or a condition needs attention; 2 the daemon cannot be asked.
#[derive(Debug, Args)]
pub(super) struct Status {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// How the status is written
    #[arg(long, value_enum, default_value = "human")]
    format: AnswerFormat,
}

impl Status {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let daemon = self.daemon.client(PATIENCE, output)?;
        let document = daemon.get_json("/controller/status")?.document()?;
        let read = || serde_json::from_value::<Document>(document.clone());
        let status = read().with_context(|| format!("`{}` is not a daemon", daemon.name()))?;
        output.data(&match self.format {
            AnswerFormat::Human => status.write(Timestamp::now()),
            AnswerFormat::Json => format!("{document:#}\n"),
        })?;
        let is_fine = !status.conditions.iter().any(Condition::needs_attention);
        Ok(if is_fine { Exit::Fine } else { Exit::Findings })
    }
}

/// What is shown of the status document; a newer daemon may say more.
#[derive(Debug, Deserialize)]
struct Document {
    version: String,
    started_at: Timestamp,
    repository: Watched,
    active: Option<Active>,
    observed: Option<Observed>,
    remote: Remote,
    last_failed: Option<LastFailed>,
    pinned: Option<String>,
    conditions: Vec<Condition>,
}

#[derive(Debug, Deserialize)]
struct Watched {
    url: String,
    branch: Option<String>,
    path: String,
}

#[derive(Debug, Deserialize)]
struct Active {
    commit: String,
    author: String,
    subject: String,
    activated_at: Timestamp,
    groups: usize,
}

#[derive(Debug, Deserialize)]
struct Observed {
    commit: String,
    fetched_at: Timestamp,
}

#[derive(Debug, Deserialize)]
struct Remote {
    last_contact: Option<Timestamp>,
    consecutive_failures: u32,
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct LastFailed {
    commit: String,
    stage: String,
    diagnostics: Vec<Value>,
}

#[derive(Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    reason: String,
    message: String,
    last_transition: Timestamp,
}

impl Condition {
    /// Negative conditions are present only while they are true; a type that is not known here counts as
    /// one.
    fn needs_attention(&self) -> bool {
        match self.kind.as_str() {
            "Ready" | "SourceVerified" => self.status != "True",
            "Reconciling" => false,
            _ => self.status == "True",
        }
    }
}

impl Document {
    fn write(&self, now: Timestamp) -> String {
        let mut rows = vec![("repository", self.repository.describe())];
        rows.push((
            "active",
            match &self.active {
                Some(active) => active.describe(now),
                None => "none: no commit answers".to_owned(),
            },
        ));
        rows.extend(self.observed.as_ref().map(|it| {
            let is_active = self.active.as_ref().is_some_and(|active| active.commit == it.commit);
            let commit = if is_active { "the active commit" } else { short(&it.commit) };
            ("newest", format!("{commit}, fetched {}", age(it.fetched_at, now)))
        }));
        rows.extend(self.pinned.as_ref().map(|commit| {
            ("pinned", format!("{}; `clade resume` follows the branch again", short(commit)))
        }));
        rows.extend(self.last_failed.as_ref().map(|it| ("rejected", it.describe())));
        rows.extend(self.remote.describe(now).map(|it| ("remote", it)));
        rows.push(("daemon", format!("{}, started {}", self.version, age(self.started_at, now))));
        let mut text = String::new();
        for (label, value) in rows {
            // A string takes all that is written to it.
            writeln!(text, "{label:<10}  {}", visible_up_to(&value, LONGEST)).ok();
        }
        text.push('\n');
        let head = ["CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"].map(str::to_owned);
        let rows = self.conditions.iter().map(|it| {
            let shown = |text: &str| visible_up_to(text, LONGEST);
            let since = age(it.last_transition, now);
            [shown(&it.kind), shown(&it.status), shown(&it.reason), since, shown(&it.message)]
        });
        text.push_str(&table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()));
        text
    }
}

impl Watched {
    fn describe(&self) -> String {
        let branch = self
            .branch
            .as_deref()
            .map_or_else(|| "detached HEAD".to_owned(), |branch| format!("branch {branch}"));
        match self.path.as_str() {
            "." | "" => format!("{}, {branch}", self.url),
            path => format!("{}, {branch}, path {path}", self.url),
        }
    }
}

impl Active {
    fn describe(&self, now: Timestamp) -> String {
        let plural = if self.groups == 1 { "" } else { "s" };
        format!(
            "{} {} ({}), {} group{plural}, activated {}",
            short(&self.commit),
            self.subject,
            self.author,
            self.groups,
            age(self.activated_at, now)
        )
    }
}

impl Remote {
    /// A remote that can be fetched is not worth a line.
    fn describe(&self, now: Timestamp) -> Option<String> {
        let fetches = match self.consecutive_failures {
            0 => return None,
            1 => "1 failed fetch".to_owned(),
            several => format!("{several} failed fetches"),
        };
        let contact = self.last_contact.map_or_else(
            || "never fetched".to_owned(),
            |time| format!("last fetched {}", age(time, now)),
        );
        let error = self.error.as_deref().unwrap_or("no reason");
        Some(format!("{fetches}, {contact}: {error}"))
    }
}

impl LastFailed {
    fn describe(&self) -> String {
        let commit = short(&self.commit);
        let Some(first) = self.diagnostics.first() else {
            return format!("{commit} at {}", self.stage);
        };
        let more = match self.diagnostics.len() - 1 {
            0 => String::new(),
            more => format!(" (and {more} more: `clade why {commit}`)"),
        };
        let text = |key: &str| first.get(key).and_then(Value::as_str);
        let place = text("file").map(|file| {
            let number = |key: &str| first.get(key).and_then(Value::as_u64).unwrap_or_default();
            format!("{file}:{}:{}: ", number("line"), number("column"))
        });
        let message = text("message").unwrap_or("no message");
        format!("{commit} at {}: {}{message}{more}", self.stage, place.unwrap_or_default())
    }
}

fn short(commit: &str) -> &str {
    commit.get(..SHORT).unwrap_or(commit)
}

/// Writes rows with their columns under each other; the last column is as wide as it is.
fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Document;

    #[test]
    fn a_status_is_a_table_with_ages() {
        let commit = "d7e3cef5f336fdea8a2ee9e52a99a9d236d0d86f";
        let status: Document = serde_json::from_value(json!({
            "version": "0.1.0",
            "started_at": "2026-11-22T09:00:00Z",
            "repository": {"url": "https://git.example.com/groups.git", "branch": "main", "path": "estate"},
            "active": {
                "commit": commit, "author": "Ada", "time": "2026-11-22T11:00:00Z",
                "subject": "Add \u{1b}[31mred", "activated_at": "2026-11-22T11:57:00Z",
                "groups": 812, "trigger": "webhook",
            },
            "observed": {
                "commit": "0123456789abcdef0123456789abcdef01234567",
                "fetched_at": "2026-11-22T11:59:57Z",
            },
            "remote": {
                "last_attempt": "2026-11-22T11:59:57Z", "last_contact": "2026-11-22T11:55:00Z",
                "consecutive_failures": 3, "error": "connection refused", "expected": [],
            },
            "last_failed": {
                "commit": "0123456789abcdef0123456789abcdef01234567", "stage": "check",
                "diagnostics": [
                    {"file": "groups/a.yaml", "line": 2, "column": 9, "message": "the parent `B` does not exist"},
                    {"message": "more"},
                ],
            },
            "pinned": commit,
            "a_key_of_later": 1,
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Serving", "message": "a commit answers",
                 "last_transition": "2026-11-22T11:57:00Z"},
                {"type": "CandidateRejected", "status": "True", "reason": "ValidationFailed",
                 "message": "the newest commit is not valid", "last_transition": "2026-11-22T11:59:57Z"},
            ],
        }))
        .unwrap();
        insta::assert_snapshot!(status.write("2026-11-22T12:00:00Z".parse().unwrap()), @r"
        repository  https://git.example.com/groups.git, branch main, path estate
        active      d7e3cef5f336 Add �[31mred (Ada), 812 groups, activated 3 min ago
        newest      0123456789ab, fetched 3 s ago
        pinned      d7e3cef5f336; `clade resume` follows the branch again
        rejected    0123456789ab at check: groups/a.yaml:2:9: the parent `B` does not exist (and 1 more: `clade why 0123456789ab`)
        remote      3 failed fetches, last fetched 5 min ago: connection refused
        daemon      0.1.0, started 3 h ago

        CONDITION          STATUS  REASON            SINCE      MESSAGE
        Ready              True    Serving           3 min ago  a commit answers
        CandidateRejected  True    ValidationFailed  3 s ago    the newest commit is not valid
        ");
        let attention: Vec<bool> =
            status.conditions.iter().map(super::Condition::needs_attention).collect();
        assert_eq!(attention, [false, true]);
    }
}
