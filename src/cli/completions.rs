//! `clade completions`

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use super::Exit;
use super::output::Output;

/// Print the completion script of a shell
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::command(), "clade", &mut script);
        output.data(&String::from_utf8_lossy(&script))?;
        Ok(Exit::Fine)
    }
}
