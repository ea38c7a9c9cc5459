//! `clade completions`

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;

use super::Exit;
use super::output::Output;

/// Print a shell completion script
#[derive(Debug, Args)]
pub(super) struct CompletionsCommand {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl CompletionsCommand {
    /// Writes the completion script for the commands of `definition`.
    pub(super) fn run(self, definition: &Command, output: &mut Output) -> Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut definition.clone(), "clade", &mut script);
        output.data(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Fine)
    }
}
