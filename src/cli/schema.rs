//! `clade schema`

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::Exit;
use super::output::Output;

/// Print the JSON Schema of a kind of file, for editors
#[derive(Debug, Args)]
pub(super) struct SchemaCommand {
    /// The kind of file [default: list the kinds]
    #[arg(value_enum)]
    kind: Option<SchemaKind>,
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
        output.data(match self.kind {
            None => "group\nnode\nenvironment\ntest\nclade\n",
            Some(SchemaKind::Group) => include_str!("../../schemas/group.json"),
            Some(SchemaKind::Node) => include_str!("../../schemas/node.json"),
            Some(SchemaKind::Environment) => include_str!("../../schemas/environment.json"),
            Some(SchemaKind::Test) => include_str!("../../schemas/test.json"),
            Some(SchemaKind::Clade) => include_str!("../../schemas/clade.json"),
        })?;
        Ok(Exit::Fine)
    }
}
