//! `clade status`: what a daemon serves, and what needs attention.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;

use super::Exit;
use super::age::age;
use super::client::{AnswerFormat, DaemonArgs, Document};
use super::output::Output;
use super::table::table;
use crate::diagnostic::visible_up_to;
use crate::http::types::{
    self, ActiveCommit, Condition, ConditionStatus, FailedCommit, Remote, Repository,
};
use crate::model::CommitId;

/// How long the daemon may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest text of a commit or a message that is shown.
const LONGEST: usize = 400;

/// How much of a commit id is shown where the whole is not needed.
const SHORT: usize = 12;

/// Show what a daemon serves: the commit that answers, the newest one, and what needs attention
///
/// Exit status: 0 fine; 1 no commit answers, or a condition needs attention; 2 the daemon cannot be reached.
#[derive(Debug, Args)]
pub(super) struct StatusCommand {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: AnswerFormat,
}

impl StatusCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let daemon = self.daemon.client(PATIENCE, output)?;
        let reply = daemon.get_json("/controller/status")?;
        let Document { sent, read: status } = Document::<types::Status>::of(reply, &daemon)?;
        output.data(&match self.format {
            AnswerFormat::Human => write(&status, Timestamp::now()),
            AnswerFormat::Json => format!("{sent:#}\n"),
        })?;
        let is_fine = !status.conditions.iter().any(needs_attention);
        Ok(if is_fine { Exit::Fine } else { Exit::Findings })
    }
}

/// Returns whether a condition needs attention. Negative conditions are present only while they are true; a
/// type that is not known here counts as one.
fn needs_attention(condition: &Condition) -> bool {
    match condition.kind.as_str() {
        "Ready" | "SourceVerified" => condition.status != ConditionStatus::True,
        "Reconciling" => false,
        _ => condition.status == ConditionStatus::True,
    }
}

fn write(status: &types::Status, now: Timestamp) -> String {
    let mut rows = vec![("repository", describe_repository(&status.repository))];
    rows.push((
        "active",
        match &status.active {
            Some(active) => describe_active(active, now),
            None => "none: no commit answers".to_owned(),
        },
    ));
    rows.extend(status.observed.as_ref().map(|it| {
        let is_active = status.active.as_ref().is_some_and(|active| active.commit == it.commit);
        let commit = if is_active { "the active commit".to_owned() } else { short(it.commit) };
        ("newest", format!("{commit}, fetched {}", age(it.fetched_at, now)))
    }));
    rows.extend(status.pinned.as_ref().map(|commit| {
        ("pinned", format!("{}; `clade resume` follows the branch again", short(*commit)))
    }));
    rows.extend(status.last_failed.as_ref().map(|it| ("rejected", describe_failed(it))));
    rows.extend(describe_remote(&status.remote, now).map(|it| ("remote", it)));
    rows.push(("daemon", format!("{}, started {}", status.version, age(status.started_at, now))));
    let mut text = String::new();
    for (label, value) in rows {
        // A string takes all that is written to it.
        writeln!(text, "{label:<10}  {}", visible_up_to(&value, LONGEST)).ok();
    }
    text.push('\n');
    let head = ["CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"].map(str::to_owned);
    let rows = status.conditions.iter().map(|it| {
        let shown = |text: &str| visible_up_to(text, LONGEST);
        let since = age(it.last_transition, now);
        [
            shown(&it.kind),
            shown(&format!("{:?}", it.status)),
            shown(&it.reason),
            since,
            shown(&it.message),
        ]
    });
    text.push_str(&table(&std::iter::once(head).chain(rows).collect::<Vec<_>>()));
    text
}

fn describe_repository(repository: &Repository) -> String {
    let branch = repository
        .branch
        .as_deref()
        .map_or_else(|| "detached HEAD".to_owned(), |branch| format!("branch {branch}"));
    match repository.path.as_str() {
        "." | "" => format!("{}, {branch}", repository.url),
        path => format!("{}, {branch}, path {path}", repository.url),
    }
}

fn describe_active(active: &ActiveCommit, now: Timestamp) -> String {
    let plural = if active.groups == 1 { "" } else { "s" };
    format!(
        "{} {} ({}), {} group{plural}, activated {}",
        short(active.commit),
        active.subject,
        active.author,
        active.groups,
        age(active.activated_at, now)
    )
}

/// A remote that can be fetched is not worth a line.
fn describe_remote(remote: &Remote, now: Timestamp) -> Option<String> {
    let fetches = match remote.consecutive_failures {
        0 => return None,
        1 => "1 failed fetch".to_owned(),
        several => format!("{several} failed fetches"),
    };
    let contact = remote.last_contact.map_or_else(
        || "never fetched".to_owned(),
        |time| format!("last fetched {}", age(time, now)),
    );
    let error = remote.error.as_deref().unwrap_or("no reason");
    Some(format!("{fetches}, {contact}: {error}"))
}

fn describe_failed(failed: &FailedCommit) -> String {
    let commit = short(failed.commit);
    let Some(first) = failed.diagnostics.first() else {
        return format!("{commit} at {}", failed.stage.as_str());
    };
    let more = match failed.diagnostics.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more: `clade why {commit}`)"),
    };
    let place = first.file.as_ref().map(|file| {
        let (line, column) = (first.line.unwrap_or_default(), first.column.unwrap_or_default());
        format!("{file}:{line}:{column}: ")
    });
    format!(
        "{commit} at {}: {}{}{more}",
        failed.stage.as_str(),
        place.unwrap_or_default(),
        first.message
    )
}

fn short(commit: CommitId) -> String {
    commit.to_string().chars().take(SHORT).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{needs_attention, write};
    use crate::http::types;

    #[test]
    fn a_status_is_a_table_with_ages() {
        let commit = "d7e3cef5f336fdea8a2ee9e52a99a9d236d0d86f";
        let status: types::Status = serde_json::from_value(json!({
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
        insta::assert_snapshot!(write(&status, "2026-11-22T12:00:00Z".parse().unwrap()), @r"
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
        let attention: Vec<bool> = status.conditions.iter().map(needs_attention).collect();
        assert_eq!(attention, [false, true]);
    }
}
