//! `clade validate`

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::Exit;
use super::output::Output;
use super::repository::RepositoryArgs;
use crate::diagnostic;

/// Validate a group repository before it is merged
#[derive(Debug, Args)]
pub(super) struct Validate {
    #[command(flatten)]
    repository: RepositoryArgs,
    /// How findings are written
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// For people, with the lines and what is wrong in them
    Human,
    /// One JSON object
    Json,
    /// Workflow commands of GitHub Actions: annotations on the lines
    Github,
    /// A code quality report of GitLab
    Gitlab,
    /// SARIF 2.1.0
    Sarif,
    /// JUnit XML
    Junit,
}

impl From<Format> for diagnostic::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Human => Self::Human,
            Format::Json => Self::Json,
            Format::Github => Self::Github,
            Format::Gitlab => Self::Gitlab,
            Format::Sarif => Self::Sarif,
            Format::Junit => Self::Junit,
        }
    }
}

impl Validate {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let loaded = self.repository.load()?;
        let text = loaded.render(self.format.into(), output.colour());
        output.data(&text)?;
        Ok(if loaded.checked.is_valid() { Exit::Fine } else { Exit::Findings })
    }
}
