//! `clade history`: how the answer of a node changed.

mod walk;

use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use ureq::http::StatusCode;

use super::Exit;
use super::client::{
    AnswerFormat, DEFAULT_SERVER, IdentityArgs, read_value, server_of_environment,
};
use super::masks::MaskArgs;
use super::node::NodeArgs;
use super::output::Output;
use super::repository::{BUDGET_OF_DAEMON, BudgetArgs};
use crate::age::age;
use crate::diagnostic::{visible, visible_up_to};
use crate::http::types::{AnswerChange, FactChange, StoredChange};
use crate::model::MASKED;

/// How long one page may take.
const TIMEOUT: Duration = Duration::from_mins(1);

/// How many changes a page has.
const PAGE: usize = 1000;

/// How many characters of a commit's id are shown.
const SHORT: usize = 8;

/// How many characters of an author's name are shown.
const AUTHOR: usize = 16;

/// How many characters of a value are shown.
const LONGEST: usize = 60;

/// How many values and facts are shown of one change.
const LINES: usize = 20;

/// Show how a node's answer changed, newest first: commit, author, age, cause, and what changed
///
/// Causes: commit, the commit alone makes the change; facts, the facts alone do; both, neither does alone or each
/// does; first, there was no answer before.
///
/// A daemon tells what it answered, with the facts that the node had. With --facts, --trusted, --repo or --rev, the
/// commits of a repository are read instead: what each would have given the node with the facts it has now.
#[derive(Debug, Args)]
pub(super) struct HistoryCommand {
    /// The node's certname, such as `web1.example.com`
    #[arg(value_name = "NODE")]
    node: String,
    /// How many changes at most
    #[arg(long, value_name = "NUMBER", default_value = "100")]
    limit: NonZeroUsize,
    /// Only changes before this time, such as 2026-10-03T02:10:00Z
    #[arg(long, value_name = "TIME")]
    before: Option<Timestamp>,
    /// The directory of the group repository [default: .]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// The revision whose history is read [default: HEAD]
    #[arg(long, value_name = "REV")]
    rev: Option<String>,
    #[command(flatten)]
    facts: NodeArgs,
    #[command(flatten)]
    masks: MaskArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: AnswerFormat,
    /// The daemon: a URL, or the path of its unix socket [default: `CLADE_SERVER`, or else `http://127.0.0.1:4433`, without --repo, --rev, --facts and --trusted]
    #[arg(
        long,
        value_name = "URL",
        conflicts_with_all = ["repo", "rev", "facts", "trusted"],
        help_heading = "Daemon"
    )]
    server: Option<String>,
    #[command(flatten, next_help_heading = "Daemon")]
    identity: IdentityArgs,
}

impl HistoryCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        if self.repo.is_some() || self.rev.is_some() || self.facts.is_given() {
            return self.walk(output);
        }
        if self.budget.is_given() {
            bail!("{BUDGET_OF_DAEMON}");
        }
        self.ask(output)
    }

    /// Asks a daemon what it answered.
    fn ask(&self, output: &mut Output) -> Result<Exit> {
        let server = self.server.clone().or_else(server_of_environment);
        let server = server.unwrap_or_else(|| DEFAULT_SERVER.to_owned());
        let daemon = self.identity.client_of_first(&server, TIMEOUT, output)?;
        let node = utf8_percent_encode(&self.node, NON_ALPHANUMERIC);
        let (mut before, mut sent) = (self.before, Vec::new());
        let mut read: Vec<StoredChange> = Vec::new();
        let mut most = PAGE;
        while read.len() < self.limit.get() {
            let wanted = most.min(self.limit.get() - read.len());
            let before_then = before.map(|it| format!("&before={it}")).unwrap_or_default();
            let path = format!("/controller/nodes/{node}/history?limit={wanted}{before_then}");
            let reply = daemon.get_json(&path)?;
            if reply.status == StatusCode::PAYLOAD_TOO_LARGE && wanted > 1 {
                // So many of these changes are too large for one answer.
                most = wanted / 2;
                continue;
            }
            let page = reply.document()?;
            let changes: Vec<StoredChange> =
                read_value(&page).context("the answer of the daemon cannot be read")?;
            let Value::Array(page) = page else { bail!("expected a list") };
            before = changes.last().map(|it| it.time);
            let size = changes.len();
            sent.extend(page);
            read.extend(changes);
            if size < wanted {
                break;
            }
        }
        match self.format {
            AnswerFormat::Json => output.data(&format!("{:#}\n", Value::from(sent)))?,
            AnswerFormat::Human if read.is_empty() => {
                output.note("no answer of the node is known then");
            }
            AnswerFormat::Human => output.data(&write(&read, Timestamp::now()))?,
        }
        Ok(Exit::Fine)
    }
}

fn write(changes: &[StoredChange], now: Timestamp) -> String {
    let mut text = String::new();
    for change in changes {
        text.push_str(&head(change, now));
        let facts = change.facts.iter().map(fact_line);
        let lines: Vec<String> = change.changes.iter().map(value_line).chain(facts).collect();
        for line in lines.iter().take(LINES) {
            // A string takes all that is written to it.
            writeln!(text, "    {line}").ok();
        }
        if let Some(more) = lines.len().checked_sub(LINES).filter(|it| *it > 0) {
            writeln!(text, "    and {more} more: `--format json` shows all").ok();
        }
    }
    text
}

/// Writes when the answer changed and why, in the manner of `clade blame`.
fn head(change: &StoredChange, now: Timestamp) -> String {
    let mut id = change.commit.id.to_string();
    id.truncate(SHORT);
    let author = change.commit.author.as_deref().unwrap_or("-");
    let author: String = visible(author).chars().take(AUTHOR).collect();
    let age = age(change.time, now);
    let subject = change.commit.subject.as_deref();
    let subject = visible(subject.unwrap_or("(the repository does not have the commit any more)"));
    format!("{id} {author:<AUTHOR$} {age:>12}  {:<6}  {subject}\n", change.cause.as_str())
}

fn value_line(change: &AnswerChange) -> String {
    let because = change.because.as_ref().map(|it| format!(" ({})", visible(&it.name)));
    let because = because.unwrap_or_default();
    let key = visible(&change.key);
    match (&change.before, &change.after) {
        _ if is_membership(&change.key) => format!("{} {key}{because}", sign(change)),
        // Two secrets look alike.
        (Some(before), Some(after)) if before == after && !is_masked(after) => {
            let group = change.because.as_ref().map(|it| format!("`{}`", visible(&it.name)));
            let group = group.unwrap_or_else(|| "the node's own file".to_owned());
            format!("~ {key} = {}, now set by {group}", shown(after))
        }
        _ => {
            let (before, after) = (change.shown_before(), change.shown_after());
            format!("{} {key}{}{because}", sign(change), from_to(before, after))
        }
    }
}

/// Returns whether a part of a value is not shown.
fn is_masked(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(MASKED),
        Value::Array(elements) => elements.iter().any(is_masked),
        Value::Object(fields) => fields.values().any(is_masked),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Says whether a value came, went or changed.
fn sign(change: &AnswerChange) -> char {
    match (&change.before, &change.after) {
        (None, _) => '+',
        (_, None) => '-',
        _ => '~',
    }
}

fn fact_line(fact: &FactChange) -> String {
    format!("  fact {}{}", visible(&fact.path), from_to(fact.before.as_ref(), fact.after.as_ref()))
}

fn from_to(before: Option<&Value>, after: Option<&Value>) -> String {
    match (before, after) {
        (Some(before), Some(after)) => format!(": {} -> {}", shown(before), shown(after)),
        (Some(before), None) => format!(": was {}", shown(before)),
        (None, after) => format!(" = {}", after.map(shown).unwrap_or_default()),
    }
}

fn shown(value: &Value) -> String {
    visible_up_to(&value.to_string(), LONGEST)
}

/// Returns whether a key says all: that the node has a class or is in a group.
fn is_membership(key: &str) -> bool {
    let is_class = |class: &str| !class.contains('.');
    key.starts_with("groups.") || key.strip_prefix("classes.").is_some_and(is_class)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{value_line, write};
    use crate::http::types::{AnswerChange, StoredChange};

    #[test]
    fn what_came_instead_of_an_answer_is_in_words() {
        let change: AnswerChange = serde_json::from_value(json!({
            "key": "conflict", "before": null, "because": null,
            "after": {"summary": "They differ.", "details": {"classes": {}}},
        }))
        .unwrap();
        assert_eq!(value_line(&change), r#"+ conflict = "They differ.""#);
        let error = AnswerChange { key: "error".to_owned(), ..change.clone() };
        assert!(value_line(&error).contains("details"), "it has no message");
        let gone = AnswerChange { before: change.after, after: None, ..error };
        let gone = AnswerChange { key: "conflict".to_owned(), ..gone };
        assert_eq!(value_line(&gone), r#"- conflict: was "They differ.""#);
    }

    #[test]
    fn a_history_is_a_paragraph_a_change() {
        let web = json!({"id": "36241e24-ecd8-4143-9145-932efae5ffb1", "name": "Webservers"});
        let value = |key: &str, before: Value, after: Value| json!({"key": key, "before": before, "after": after, "because": web});
        let changes: Vec<StoredChange> = serde_json::from_value(json!([
            {
                "time": "2026-11-22T11:57:00Z",
                "commit": {"id": "d7e3cef5f336fdea8a2ee9e52a99a9d236d0d86f", "author": "Ada Lovelace",
                           "subject": "Serve on 8080", "time": "2026-11-22T11:55:00Z"},
                "commit_before": "0123456789abcdef0123456789abcdef01234567",
                "cause": "both",
                "facts": [{"path": "os.release.major", "before": "8", "after": "9"},
                          {"path": "role", "before": null, "after": "web"}],
                "changes": [
                    value("classes.apache.port", json!(80), json!(8080)),
                    value("classes.ntp", Value::Null, json!({})),
                    value("variables.tier", json!("web"), Value::Null),
                    value("variables.owner", json!("x"), json!("x")),
                ],
            },
            {
                "time": "2026-11-20T11:57:00Z",
                "commit": {"id": "0123456789abcdef0123456789abcdef01234567"},
                "commit_before": null, "cause": "first", "facts": [],
                "changes": (0..22).map(|it| value(&format!("variables.v{it:02}"), Value::Null, json!(it)))
                    .collect::<Vec<_>>(),
            },
        ]))
        .unwrap();
        insta::assert_snapshot!(write(&changes, "2026-11-22T12:00:00Z".parse().unwrap()), @r##"
        d7e3cef5 Ada Lovelace        3 min ago  both    Serve on 8080
            ~ classes.apache.port: 80 -> 8080 (Webservers)
            + classes.ntp (Webservers)
            - variables.tier: was "web" (Webservers)
            ~ variables.owner = "x", now set by `Webservers`
              fact os.release.major: "8" -> "9"
              fact role = "web"
        01234567 -                     2 d ago  first   (the repository does not have the commit any more)
            + variables.v00 = 0 (Webservers)
            + variables.v01 = 1 (Webservers)
            + variables.v02 = 2 (Webservers)
            + variables.v03 = 3 (Webservers)
            + variables.v04 = 4 (Webservers)
            + variables.v05 = 5 (Webservers)
            + variables.v06 = 6 (Webservers)
            + variables.v07 = 7 (Webservers)
            + variables.v08 = 8 (Webservers)
            + variables.v09 = 9 (Webservers)
            + variables.v10 = 10 (Webservers)
            + variables.v11 = 11 (Webservers)
            + variables.v12 = 12 (Webservers)
            + variables.v13 = 13 (Webservers)
            + variables.v14 = 14 (Webservers)
            + variables.v15 = 15 (Webservers)
            + variables.v16 = 16 (Webservers)
            + variables.v17 = 17 (Webservers)
            + variables.v18 = 18 (Webservers)
            + variables.v19 = 19 (Webservers)
            and 2 more: `--format json` shows all
        "##);
    }
}
