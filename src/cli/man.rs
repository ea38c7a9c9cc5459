//! `clade man`

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;

use super::Exit;

/// Write the manual pages into a directory, for packages
#[derive(Debug, Args)]
#[command(hide = true)]
pub(super) struct Man {
    /// The directory, which is made if it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Man {
    pub(super) fn run(self) -> Result<Exit> {
        let shown = self.directory.display();
        std::fs::create_dir_all(&self.directory)
            .with_context(|| format!("cannot make `{shown}`"))?;
        clap_mangen::generate_to(super::command(), &self.directory)
            .with_context(|| format!("cannot write the manual pages into `{shown}`"))?;
        Ok(Exit::Fine)
    }
}
