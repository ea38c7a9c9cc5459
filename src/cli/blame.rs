//! `clade blame`

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::Exit;
use super::age::age;
use super::client::{IdentityArgs, error_kind, read_object};
use super::node::NodeArgs;
use super::output::{DataFormat, Output};
use super::repository::{BudgetArgs, locate};
use crate::answer::NoAnswer;
use crate::diagnostic::visible;
use crate::http::types::{BlamedValue, Error, ErrorKind};
use crate::reconcile;

/// How long a daemon may take: it reads every commit of the branch.
const PATIENCE: Duration = Duration::from_mins(3);

/// How many characters of a commit's id are shown.
const SHORT: usize = 8;

/// How many characters of an author's name are shown.
const AUTHOR: usize = 16;

/// How many characters of a value are shown.
const LONGEST: usize = 60;

/// Show after which commit a node first got each of its values: commit, author, age, file and line, value
///
/// The node is classified, with the facts it has now, at each commit of the branch that may concern it. A commit
/// that is marked with ^ is the oldest that the repository has; the value may be older.
#[derive(Debug, Args)]
pub(super) struct BlameCommand {
    /// The node's certname
    #[arg(value_name = "NODE")]
    node: String,
    /// A class, parameter (`apache::port`), variable or group, or `environment` [default: all values]
    #[arg(value_name = "KEY")]
    key: Option<String>,
    /// The directory of the group repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    /// The revision whose values are blamed
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    rev: String,
    #[command(flatten)]
    facts: NodeArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    /// How the values are written
    #[arg(long, value_enum, default_value = "human")]
    format: BlameFormat,
    /// Ask a daemon, which knows the node's facts: a URL, or the path of its unix socket
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BlameFormat {
    /// A line a value, as soon as its commit is known
    Human,
    /// One JSON array
    Json,
    /// The same array as YAML
    Yaml,
}

impl BlameCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let now = Timestamp::now();
        let format = match self.format {
            BlameFormat::Human => None,
            BlameFormat::Json => Some(DataFormat::Json),
            BlameFormat::Yaml => Some(DataFormat::Yaml),
        };
        if let Some(server) = &self.server {
            let Some(mut values) = self.ask(server, output)? else { return Ok(Exit::Findings) };
            values.sort_by(|a, b| b.since.cmp(&a.since).then_with(|| a.key.cmp(&b.key)));
            return match format {
                Some(format) => write_all(values, format, output),
                None => {
                    let lines: Vec<String> = values.iter().map(|it| line(it, now)).collect();
                    output.data(&lines.concat()).map(|()| Exit::Fine)
                }
            };
        }
        let node = self.facts.node(&self.node)?;
        let (repository, directory) = locate(&self.repo)?;
        let head = repository.resolve_searching(&self.rev)?;
        // Such as of `head`, which has enough after some lines.
        let is_closed = AtomicBool::new(false);
        let is_wanted = || !is_closed.load(Ordering::Relaxed);
        let blame =
            reconcile::Blame::new(&repository, &directory, self.budget.budget(), &is_wanted);
        let (mut values, mut written) = (Vec::new(), Ok(()));
        let blamed = blame.run(head, &node, self.key.as_deref(), &mut |value| {
            let value = BlamedValue::from(value);
            if format.is_some() {
                values.push(value);
            } else if written.is_ok() {
                written = output.data(&line(&value, now));
                is_closed.store(written.is_err(), Ordering::Relaxed);
            }
        });
        written?;
        match blamed {
            Err(reconcile::BlameError::NoAnswer(NoAnswer::Conflict(summary))) => {
                output.note(&format!("error: {summary}"));
                return Ok(Exit::Findings);
            }
            done => done?,
        }
        format.map_or(Ok(Exit::Fine), |format| write_all(values, format, output))
    }

    /// Asks a daemon about the node; none for a node in conflict.
    fn ask(&self, server: &str, output: &mut Output) -> Result<Option<Vec<BlamedValue>>> {
        let daemon = self.identity.client_of_first(server, PATIENCE, output)?;
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let key = self.key.as_ref().map(|key| format!("?key={}", encode(key)));
        let path =
            format!("/controller/nodes/{}/blame{}", encode(&self.node), key.unwrap_or_default());
        let reply = daemon.get_json(&path)?;
        if error_kind(&reply) == Some(ErrorKind::ClassificationConflict) {
            let error: Error = read_object(&reply.body)?;
            output.note(&format!("error: {}", error.msg));
            return Ok(None);
        }
        let document = reply.document()?;
        let values = serde_json::from_value(document);
        Ok(Some(values.context("the answer of the daemon cannot be read")?))
    }
}

/// Writes values as data, by key.
fn write_all(
    mut values: Vec<BlamedValue>,
    format: DataFormat,
    output: &mut Output,
) -> Result<Exit> {
    values.sort_by(|a, b| a.key.cmp(&b.key));
    output.data(&format.write(&serde_json::to_value(values)?))?;
    Ok(Exit::Fine)
}

/// Writes a value as a line, in the manner of `git blame`.
fn line(value: &BlamedValue, now: Timestamp) -> String {
    let boundary = if value.boundary { "^" } else { "" };
    let mut commit = format!("{boundary}{}", value.commit.id);
    commit.truncate(SHORT);
    let author: String = visible(&value.commit.author).chars().take(AUTHOR).collect();
    let age = age(value.commit.time, now);
    let place = match (&value.file, value.line) {
        (Some(file), Some(line)) => format!("{}:{line}", visible(file)),
        _ => "-".to_owned(),
    };
    let mut text = format!("{commit} {author:<AUTHOR$} {age:>12}  {place}");
    if let Some(group) = &value.group {
        let _infallible = write!(text, " ({})", visible(group));
    }
    let _infallible = write!(text, "  {}", visible(&value.key));
    if !is_membership(&value.key) {
        let written = value.value.to_string();
        let shown = visible(&written);
        let cut: String = shown.chars().take(LONGEST).collect();
        let more = if cut.len() < shown.len() { "…" } else { "" };
        let _infallible = write!(text, " = {cut}{more}");
    }
    text.push('\n');
    text
}

/// Returns whether a key says all: that the node has a class or is in a group.
fn is_membership(key: &str) -> bool {
    let is_class = |class: &str| !class.contains('.');
    key.starts_with("groups.") || key.strip_prefix("classes.").is_some_and(is_class)
}
