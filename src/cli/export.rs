//! `clade export`

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use super::Exit;
use super::classify::pretty;
use super::output::Output;
use super::repository::RepositoryArgs;
use crate::hierarchy::group_to_value;

/// Print a group repository as the JSON that Puppet Enterprise's `GET /v1/groups` answers
#[derive(Debug, Args)]
pub(super) struct Export {
    #[command(flatten)]
    repository: RepositoryArgs,
}

impl Export {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let estate = self.repository.estate()?;
        let groups: Value = estate.hierarchy.groups().map(group_to_value).collect();
        output.data(&pretty(&groups))?;
        Ok(Exit::Fine)
    }
}
