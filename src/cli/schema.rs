//! `clade schema`

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde_json::Value;

use super::Exit;
use super::output::Output;
use super::repository::{BudgetArgs, RepositoryArgs};
use crate::validation::{SourceContent, bundle};

/// Print the JSON Schema of a kind of file, for editors
#[derive(Debug, Args)]
pub(super) struct SchemaCommand {
    /// The kind of file [default: list the kinds]
    #[arg(value_enum)]
    kind: Option<SchemaKind>,
    /// Print one schema of groups: Clade's own, and those that `clade.yaml` of a repository names
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".", conflicts_with = "kind")]
    own: Option<PathBuf>,
    /// With `--own`, read this git revision instead of the working tree
    #[arg(long, value_name = "REV")]
    rev: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SchemaKind {
    /// groups/**/*.yaml
    Group,
    /// nodes/**/*.yaml
    Node,
    /// environments/*.yaml
    Environment,
    /// tests/**/*.yaml
    Test,
    /// clade.yaml
    Clade,
}

impl SchemaCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        if self.own.is_none() && self.rev.is_some() {
            bail!("`--rev` is of use with `--own` only");
        }
        if self.own.is_some() {
            return print_own(self.own, self.rev, output);
        }
        output.data(match self.kind {
            None => "group\nnode\nenvironment\ntest\nclade\n",
            Some(SchemaKind::Group) => GROUP,
            Some(SchemaKind::Node) => include_str!("../../schemas/node.json"),
            Some(SchemaKind::Environment) => include_str!("../../schemas/environment.json"),
            Some(SchemaKind::Test) => include_str!("../../schemas/test.json"),
            Some(SchemaKind::Clade) => include_str!("../../schemas/clade.json"),
        })?;
        Ok(Exit::Fine)
    }
}

const GROUP: &str = include_str!("../../schemas/group.json");

/// Prints our schema of groups together with those of a repository.
fn print_own(directory: Option<PathBuf>, rev: Option<String>, output: &mut Output) -> Result<Exit> {
    let repository = RepositoryArgs { directory, rev, budget: BudgetArgs::default() };
    let loaded = repository.load()?;
    let read = |path: &str| Some(SourceContent::Bytes(loaded.text(path)?.into()));
    let ours: Value = serde_json::from_str(GROUP)?;
    match bundle(&ours, &loaded.checked.layout().schemas, &read) {
        Ok(schema) => {
            output.data(&format!("{schema:#}\n"))?;
            Ok(Exit::Fine)
        }
        Err(found) => {
            for it in &found {
                let start = it.place.span.start;
                output.note(&format!(
                    "{}:{}:{}: {}",
                    it.place.file, start.line, start.column, it.message
                ));
            }
            Ok(Exit::Findings)
        }
    }
}
