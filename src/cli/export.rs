//! `clade export`

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::Exit;
use super::output::{DataFormat, Output};
use super::repository::RepositoryArgs;
use crate::hierarchy::group_to_value;

/// Print the groups of a repository as Puppet Enterprise's `GET /v1/groups` answers them
#[derive(Debug, Args)]
pub(super) struct ExportCommand {
    #[command(flatten)]
    repository: RepositoryArgs,
    /// The output format; Puppet Enterprise and `clade import` read JSON
    #[arg(long, value_enum, default_value = "json")]
    format: DataFormat,
}

impl ExportCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let estate = self.repository.estate()?;
        let groups: Value = estate.hierarchy.groups().map(group_to_value).collect();
        output.data(&self.format.write(&groups))?;
        Ok(Exit::Fine)
    }
}
