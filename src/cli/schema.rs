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
    kind: Option<Kind>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
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
            Some(Kind::Group) => include_str!("../../schemas/group.json"),
            Some(Kind::Node) => include_str!("../../schemas/node.json"),
            Some(Kind::Environment) => include_str!("../../schemas/environment.json"),
            Some(Kind::Test) => include_str!("../../schemas/test.json"),
            Some(Kind::Clade) => include_str!("../../schemas/clade.json"),
        })?;
        Ok(Exit::Fine)
    }
}
