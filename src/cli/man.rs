//! `clade man`

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, Command};

use super::Exit;
use super::output::Output;

/// Write the manual pages into a directory, or the first one to stdout
#[derive(Debug, Args)]
pub(super) struct ManCommand {
    /// The directory, created if absent [default: print the page of `clade` to stdout]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl ManCommand {
    /// Writes the pages of the commands of `definition`.
    pub(super) fn run(self, definition: &Command, output: &mut Output) -> Result<Exit> {
        let Some(directory) = self.directory else {
            let mut page = Vec::new();
            // As in the directory, whose pages are those of the commands themselves.
            let definition = definition.clone().disable_help_subcommand(true);
            clap_mangen::Man::new(definition).render(&mut page)?;
            output.data(&String::from_utf8(page)?)?;
            return Ok(Exit::Fine);
        };
        let shown = directory.display();
        std::fs::create_dir_all(&directory).with_context(|| format!("cannot create `{shown}`"))?;
        clap_mangen::generate_to(definition.clone(), &directory)
            .with_context(|| format!("cannot write the manual pages into `{shown}`"))?;
        Ok(Exit::Fine)
    }
}
