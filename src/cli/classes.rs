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
pub(super) struct ClassesCommand {
    #[command(subcommand)]
    subcommand: ClassesSubcommand,
}

#[derive(Debug, Subcommand)]
enum ClassesSubcommand {
    Scan(scan::ScanCommand),
    Pull(Box<pull::PullCommand>),
}

impl ClassesCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        match self.subcommand {
            ClassesSubcommand::Scan(command) => command.run(output),
            ClassesSubcommand::Pull(command) => command.run(output),
        }
    }
}
