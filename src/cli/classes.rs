//! `clade classes`

mod catalogue;
mod pull;
mod scan;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::Exit;
use super::output::Output;

/// Write the class catalogue of an environment, which `clade validate` checks groups against
#[derive(Debug, Args)]
pub(super) struct Classes {
    #[command(subcommand)]
    source: Source,
}

#[derive(Debug, Subcommand)]
enum Source {
    Scan(scan::Scan),
    Pull(Box<pull::Pull>),
}

impl Classes {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        match self.source {
            Source::Scan(command) => command.run(output),
            Source::Pull(command) => command.run(output),
        }
    }
}
