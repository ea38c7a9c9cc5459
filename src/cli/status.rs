//! `clade status`: what a daemon serves, and what needs attention.

mod fleet;
mod screen;

use std::time::Duration;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;

use super::Exit;
use super::client::{AnswerFormat, DaemonArgs, Document};
use super::output::Output;
use crate::client::Client;
use crate::config::parse_duration;
use crate::http::types::{Commit, Status};
use fleet::FleetCounts;
pub(super) use screen::describe_repository;
use screen::{Screen, needs_attention};

/// How long the daemon may take for a part.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How many commits are shown.
const COMMITS: usize = 5;

/// Show what a daemon serves: the commit that answers, the newest one, its nodes, and what needs attention
///
/// Exit status: 0 fine; 1 no commit answers, or a condition needs attention; 2 the daemon cannot be reached.
#[derive(Debug, Args)]
pub(super) struct StatusCommand {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// From when on a node counts as silent: not seen for so long
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = check_duration)]
    silent_for: String,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: AnswerFormat,
}

/// Checks a duration, which the daemon reads.
fn check_duration(text: &str) -> Result<String, String> {
    parse_duration(text).map(|_| text.to_owned())
}

impl StatusCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let daemon = self.daemon.client(TIMEOUT, output)?;
        let reply = daemon.get_json("/controller/status")?;
        let Document { sent, read: status } = Document::<Status>::of(reply, &daemon)?;
        output.data(&match self.format {
            AnswerFormat::Json => format!("{sent:#}\n"),
            AnswerFormat::Human => {
                let active = status.active.as_ref().map(|it| it.commit);
                // What cannot be read of the rest does not hide the status.
                let fleet = FleetCounts::ask(&daemon, active, &self.silent_for);
                let fleet = fleet.map_err(|error| format!("{error:#}"));
                let commits = commits(&daemon).unwrap_or_default();
                let screen = Screen { status: &status, fleet: &fleet, commits: &commits };
                screen.write(Timestamp::now(), output.page())
            }
        })?;
        let is_fine = !status.conditions.iter().any(needs_attention);
        Ok(if is_fine { Exit::Fine } else { Exit::Findings })
    }
}

/// Returns the newest commits that the daemon knows.
fn commits(daemon: &Client) -> Result<Vec<Commit>> {
    let reply = daemon.get_json(&format!("/controller/commits?limit={COMMITS}"))?;
    Ok(serde_json::from_value(reply.document()?)?)
}
