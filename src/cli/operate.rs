//! `clade reconcile`, `clade pin` and `clade resume`: what operators have a daemon do.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::Exit;
use super::client::{AnswerFormat, DaemonArgs};
use super::output::Output;
use super::why::{findings, resolve};
use crate::client::Client;
use crate::http::types::Finding;

/// How long the daemon may take: it builds the commit that it pins.
const PATIENCE: Duration = Duration::from_mins(2);

/// Which daemon, and how its answer is written.
#[derive(Debug, Args)]
struct Asked {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// How the answer is written
    #[arg(long, value_enum, default_value = "human")]
    format: AnswerFormat,
}

/// Have a daemon fetch its branch now
#[derive(Debug, Args)]
pub(super) struct Reconcile {
    #[command(flatten)]
    asked: Asked,
}

/// Have a daemon answer from one commit, whatever is pushed, until `clade resume`
///
/// Exit status: 0 the commit answers; 1 it is not valid; 2 it is not known, or the daemon cannot be asked.
#[derive(Debug, Args)]
pub(super) struct Pin {
    /// The commit: anything that `git rev-parse` understands, in the repository of the working directory if there is one, else in that of the daemon
    #[arg(value_name = "REV")]
    revision: String,
    #[command(flatten)]
    asked: Asked,
}

/// Have a daemon follow its branch again, after `clade pin` or a rewritten history
#[derive(Debug, Args)]
pub(super) struct Resume {
    #[command(flatten)]
    asked: Asked,
}

impl Asked {
    fn write(&self, answer: &Value, said: &str, output: &mut Output) -> Result<Exit> {
        output.data(&match self.format {
            AnswerFormat::Human => format!("{said}\n"),
            AnswerFormat::Json => format!("{answer:#}\n"),
        })?;
        Ok(Exit::Fine)
    }

    fn daemon(&self, output: &mut Output) -> Result<Client> {
        self.daemon.client(PATIENCE, output)
    }
}

impl Reconcile {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let daemon = self.asked.daemon(output)?;
        let answer = daemon.post_json("/controller/reconcile", "{}")?.document()?;
        let said = "the daemon fetches its branch; `clade status` shows what comes of it";
        self.asked.write(&answer, said, output)
    }
}

impl Pin {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let daemon = self.asked.daemon(output)?;
        let revision = resolve(&self.revision, output)?;
        let answer =
            daemon.post_json("/controller/pin", &json!({"commit": revision}).to_string())?;
        match answer.kind() {
            Some("unknown-commit") => bail!(
                "unknown revision `{revision}` at `{}`; push the commit, or run `clade reconcile` if the daemon has not fetched it yet",
                daemon.name()
            ),
            // What is wrong with the commit is what was asked for.
            Some("invalid-commit") => {
                let details = answer.body.get("details").cloned().unwrap_or_default();
                // One that this program cannot read does not hide the others.
                let found = details.as_array().into_iter().flatten();
                let found: Vec<Finding> =
                    found.filter_map(|it| serde_json::from_value(it.clone()).ok()).collect();
                let said = match self.asked.format {
                    AnswerFormat::Human => findings(&found),
                    AnswerFormat::Json => format!("{:#}\n", answer.body),
                };
                output.data(&said)?;
                output.note(&format!("error: {revision} is not valid and cannot be pinned"));
                return Ok(Exit::Findings);
            }
            _ => {}
        }
        let answer = answer.document()?;
        let commit = answer.get("pinned").and_then(Value::as_str).unwrap_or_default();
        let said = format!("{commit} is pinned and answers until `clade resume`");
        self.asked.write(&answer, &said, output)
    }
}

impl Resume {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let daemon = self.asked.daemon(output)?;
        let answer = daemon.post_json("/controller/resume", "{}")?.document()?;
        let said =
            "the daemon follows its branch again; `clade status` shows the commit that answers";
        self.asked.write(&answer, said, output)
    }
}
