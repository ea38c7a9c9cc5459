//! `clade reconcile`, `clade pin` and `clade resume`: the actions of operators.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Exit;
use super::client::{AnswerFormat, DaemonArgs, Document, error_kind, read_object};
use super::output::Output;
use super::why::{findings, resolve};
use crate::client::{Client, JsonReply};
use crate::http::types::{
    self, ErrorKind, Finding, OperatorRequest, PinRequest, Pinned, Requested,
};
use crate::model::CommitId;

/// How long the daemon may take: it builds the commit that it pins.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Which daemon, and how its answer is written.
#[derive(Debug, Args)]
struct OperatorArgs {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// Why, for the journal of the daemon
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: AnswerFormat,
}

/// Make a daemon fetch its branch now
///
/// Exit status: 0 it will fetch; 2 the daemon cannot be reached.
#[derive(Debug, Args)]
pub(super) struct ReconcileCommand {
    #[command(flatten)]
    asked: OperatorArgs,
}

/// Pin a daemon to a commit: it answers from that commit, whatever is pushed, until `clade resume`
///
/// Exit status: 0 the commit answers; 1 it is not valid; 2 it is unknown, or the daemon cannot be reached.
#[derive(Debug, Args)]
pub(super) struct PinCommand {
    /// The commit: any revision of the repository in the working directory; outside a repository the daemon resolves it
    #[arg(value_name = "REV")]
    revision: String,
    #[command(flatten)]
    asked: OperatorArgs,
}

/// Make a daemon follow its branch again, after `clade pin` or a rewritten history
///
/// Exit status: 0 it follows the branch; 2 the daemon cannot be reached.
#[derive(Debug, Args)]
pub(super) struct ResumeCommand {
    #[command(flatten)]
    asked: OperatorArgs,
}

impl OperatorArgs {
    /// Returns the body of a request that needs nothing but the reason.
    fn request(&self) -> OperatorRequest {
        OperatorRequest { reason: self.reason.clone() }
    }

    fn write(&self, answer: &Value, message: &str, output: &mut Output) -> Result<Exit> {
        output.data(&match self.format {
            AnswerFormat::Human => format!("{message}\n"),
            AnswerFormat::Json => format!("{answer:#}\n"),
        })?;
        Ok(Exit::Fine)
    }

    fn daemon(&self, output: &mut Output) -> Result<Client> {
        self.daemon.client(TIMEOUT, output)
    }
}

impl ReconcileCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let daemon = self.asked.daemon(output)?;
        let answer: Document<Requested> =
            post(&daemon, "/controller/reconcile", &self.asked.request())?;
        let message = "the daemon fetches its branch; `clade status` shows what comes of it";
        self.asked.write(&answer.sent, message, output)
    }
}

impl PinCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let daemon = self.asked.daemon(output)?;
        let revision = resolve(&self.revision, output)?;
        let request = serde_json::to_string(&PinRequest {
            commit: revision.clone(),
            reason: self.asked.reason.clone(),
        })?;
        let reply = daemon.post_json("/controller/pin", &request)?;
        match error_kind(&reply) {
            Some(ErrorKind::UnknownCommit) => bail!(
                "unknown revision `{revision}` at `{}`; push the commit, or run `clade reconcile` if the daemon has not fetched it yet",
                daemon.name()
            ),
            // The findings are data, as those of `clade validate`.
            Some(ErrorKind::InvalidCommit) => {
                self.report_invalid(&reply, output)?;
                output.note(&format!("error: {revision} is not valid and cannot be pinned"));
                return Ok(Exit::Findings);
            }
            _ => {}
        }
        let answer: Document<Pinned> = Document::of(reply, &daemon)?;
        let Some(commit) = answer.read.pinned.map(|it| it.to_string()) else {
            bail!("`{}` does not say that {revision} is pinned: see `clade status`", daemon.name())
        };
        // The full id of a tag names the commit that it is of.
        if revision.parse::<CommitId>().is_ok() && commit != revision {
            output.note(&format!("note: {revision} is of {commit}"));
        }
        let message = format!("{commit} is pinned and answers until `clade resume`");
        self.asked.write(&answer.sent, &message, output)
    }

    /// Writes what is wrong with the commit.
    fn report_invalid(&self, reply: &JsonReply, output: &mut Output) -> Result<()> {
        let error: types::Error = read_object(&reply.body)?;
        let all = error.details.as_array().into_iter().flatten();
        // One that this program cannot read does not hide the others.
        let readable = all.filter_map(|it| read_object::<Finding>(it).ok());
        output.data(&match self.asked.format {
            AnswerFormat::Human => findings(&readable.collect::<Vec<_>>()),
            AnswerFormat::Json => format!("{:#}\n", reply.body),
        })
    }
}

impl ResumeCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let daemon = self.asked.daemon(output)?;
        let answer: Document<Pinned> = post(&daemon, "/controller/resume", &self.asked.request())?;
        if let Some(commit) = answer.read.pinned {
            bail!("`{}` says that {commit} is still pinned", daemon.name());
        }
        let message =
            "the daemon follows its branch again; `clade status` shows the commit that answers";
        self.asked.write(&answer.sent, message, output)
    }
}

fn post<T: DeserializeOwned>(
    daemon: &Client,
    path: &str,
    request: &OperatorRequest,
) -> Result<Document<T>> {
    Document::of(daemon.post_json(path, &serde_json::to_string(request)?)?, daemon)
}
