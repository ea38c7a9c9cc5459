//! `clade blame`

mod line;
mod progress;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::Exit;
use super::client::{IdentityArgs, error_kind, read_object, read_value, server_of_environment};
use super::masks::MaskArgs;
use super::node::NodeArgs;
use super::output::{DataFormat, Output};
use super::repository::{BUDGET_OF_DAEMON, BudgetArgs, MeantDirectory, locate};
use crate::answer::NoAnswer;
use crate::git::Repository;
use crate::http::types::{BlamedValue, Error, ErrorKind};
use crate::reconcile::{self, pages_of};
use line::line;
pub(super) use progress::WalkProgress;

/// How long a daemon may take: it reads every commit of the branch.
const TIMEOUT: Duration = Duration::from_mins(3);

/// Show after which commit a node first got each of its values: commit, author, age, file and line, value
///
/// The node is classified, with the facts it has now, at each commit of the branch that may concern it. A commit
/// that is marked with ^ is the oldest that the repository has; the value may be older. Behind the age stands the
/// number of the pull request, if the message of the commit names one.
#[derive(Debug, Args)]
pub(super) struct BlameCommand {
    /// The node's certname, such as `web1.example.com`
    #[arg(value_name = "NODE")]
    node: String,
    /// A class, parameter (`apache::port`), variable or group, or `environment` [default: all values]
    #[arg(value_name = "KEY")]
    key: Option<String>,
    /// The directory of the group repository [default: .]
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// The revision whose values are blamed [default: HEAD]
    #[arg(long, value_name = "REV")]
    rev: Option<String>,
    #[command(flatten)]
    facts: NodeArgs,
    #[command(flatten)]
    masks: MaskArgs,
    #[command(flatten)]
    budget: BudgetArgs,
    /// How the values are written
    #[arg(long, value_enum, default_value = "human")]
    format: BlameFormat,
    /// Ask a daemon, which knows the node's facts: a URL, or the path of its unix socket [default: `CLADE_SERVER`, without --repo, --rev, --facts, --trusted and --commit-budget]
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
    /// A line a value, as soon as its commit is known, the newest first
    Human,
    /// One JSON array, by key
    Json,
    /// The same array as YAML
    Yaml,
}

impl BlameFormat {
    /// Returns how data are written; nothing where people read lines.
    fn data(self) -> Option<DataFormat> {
        match self {
            Self::Human => None,
            Self::Json => Some(DataFormat::Json),
            Self::Yaml => Some(DataFormat::Yaml),
        }
    }
}

impl BlameCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        if self.budget.is_given() && self.server.is_some() {
            bail!("{BUDGET_OF_DAEMON}");
        }
        // No certname has it, and every parameter.
        if self.node.contains("::") {
            bail!(
                "`{0}` is not a certname: name the node before the key, as in `clade blame NODE {0}`",
                self.node
            );
        }
        let is_local = self.repo.is_some() || self.rev.is_some() || self.facts.is_given();
        let is_local = is_local || self.budget.is_given();
        let daemon = || server_of_environment().filter(|_| !is_local);
        match self.server.clone().or_else(daemon) {
            Some(server) => self.ask(&server, output),
            None => self.walk(output),
        }
    }

    /// Blames by the repository.
    fn walk(&self, output: &mut Output) -> Result<Exit> {
        let (now, format) = (Timestamp::now(), self.format.data());
        let node = self.facts.node(&self.node, output)?;
        let shown = self.masks.masks().node(&node).into_owned();
        let (repository, directory) = locate_for_walk(self.repo.as_deref())?;
        let head = repository.resolve_searching(self.rev.as_deref().unwrap_or("HEAD"))?;
        // Such as of `head`, which has enough after some lines.
        let is_closed = AtomicBool::new(false);
        let progress = WalkProgress::new();
        let is_wanted = || {
            progress.advance();
            !is_closed.load(Ordering::Relaxed)
        };
        let reads_facts = AtomicBool::new(false);
        let blame =
            reconcile::Blame::new(&repository, &directory, self.budget.budget(), &is_wanted)
                .with_pages(repository.origin().as_ref().and_then(pages_of))
                .shown_as(&shown)
                .noting_facts(&reads_facts);
        let (mut values, mut written) = (Vec::new(), Ok(()));
        let mut report = |value| {
            let value = BlamedValue::from(value);
            if format.is_some() {
                values.push(value);
            } else if written.is_ok() {
                progress.clear();
                written = output.data_in_full(&line(&value, now));
                is_closed.store(written.is_err(), Ordering::Relaxed);
            }
        };
        let blamed = std::thread::scope(|scope| {
            if progress.is_shown() {
                let opener = repository.opener();
                let progress = &progress;
                scope.spawn(move || progress.count(&opener, head));
            }
            blame.run(head, &node, self.key.as_deref(), &mut report)
        });
        progress.clear();
        written?;
        if format.is_none() && blamed.is_ok() {
            self.facts.note_absence(reads_facts.into_inner(), output);
        }
        match blamed {
            Err(reconcile::BlameError::NoAnswer(NoAnswer::Conflict(summary))) => {
                output.note(&format!("error: {summary}"));
                return Ok(Exit::Findings);
            }
            Err(error @ reconcile::BlameError::NoSuchKey { hint: None, .. })
                if self.facts.facts.is_none() =>
            {
                bail!("{error}; without --facts FILE, rules see only the certname")
            }
            done => done.map_err(|it| explain_invalid(it, self.repo.as_deref()))?,
        }
        format.map_or(Ok(Exit::Fine), |format| write_all(values, format, output))
    }

    /// Asks a daemon about the node.
    fn ask(&self, server: &str, output: &mut Output) -> Result<Exit> {
        let now = Timestamp::now();
        let daemon = self.identity.client_of_first(server, TIMEOUT, output)?;
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let key = self.key.as_ref().map(|key| format!("?key={}", encode(key)));
        let path =
            format!("/controller/nodes/{}/blame{}", encode(&self.node), key.unwrap_or_default());
        let reply = progress::while_waiting(|| daemon.get_json(&path))?;
        if error_kind(&reply) == Some(ErrorKind::ClassificationConflict) {
            let error: Error = read_object(&reply.body)?;
            output.note(&format!("error: {}", error.msg));
            return Ok(Exit::Findings);
        }
        let values = read_value(&reply.document()?);
        let mut values: Vec<BlamedValue> =
            values.context("the answer of the daemon cannot be read")?;
        if let Some(format) = self.format.data() {
            return write_all(values, format, output);
        }
        values.sort_by(|a, b| b.since.cmp(&a.since).then_with(|| a.key.cmp(&b.key)));
        let lines: Vec<String> = values.iter().map(|it| line(it, now)).collect();
        output.data(&lines.concat()).map(|()| Exit::Fine)
    }
}

/// Returns the repository whose commits are walked, and the directory of the groups from its top.
pub(super) fn locate_for_walk(repo: Option<&Path>) -> Result<(Repository, String)> {
    match locate(repo.unwrap_or(Path::new("."))) {
        Err(error) if repo.is_none() => {
            bail!("{error:#}: name one with --repo DIR, or a daemon with --server URL")
        }
        located => located,
    }
}

/// Adds to the error of a commit that is not valid which repository was meant, if the directory is a part of one, or
/// around one.
pub(super) fn explain_invalid(error: reconcile::BlameError, repo: Option<&Path>) -> anyhow::Error {
    let meant = match &error {
        reconcile::BlameError::Invalid { .. } => MeantDirectory::of(repo.unwrap_or(Path::new("."))),
        _ => None,
    };
    match meant {
        Some(meant) => anyhow!("{error}; {}", meant.help_with_flag()),
        None => error.into(),
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
