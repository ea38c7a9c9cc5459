//! `clade lint`

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use clap::Args;

use super::Exit;
use super::output::Output;
use crate::diagnostic::{Kind, closest};

/// Explain what `clade validate` finds
#[derive(Debug, Args)]
pub(super) struct LintCommand {
    /// Print the page about a kind of finding, such as `schema-violation` [default: list the kinds]
    #[arg(long, value_name = "KIND")]
    explain: Option<String>,
}

impl LintCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let Some(name) = self.explain else {
            output.data(&list())?;
            return Ok(Exit::Fine);
        };
        // As reports write it, and as people copy it out of them.
        let name = name.trim_matches(['[', ']']);
        let named = || Kind::ALL.iter().map(|it| it.as_str());
        match Kind::ALL.iter().find(|it| it.as_str() == name) {
            Some(kind) => {
                output.data(kind.text())?;
                Ok(Exit::Fine)
            }
            None => Err(match closest(name, named()) {
                Some(similar) => anyhow!("unknown kind `{name}`: did you mean `{similar}`?"),
                None => anyhow!("unknown kind `{name}`: `clade lint` lists the kinds"),
            }),
        }
    }
}

/// Writes every kind with its severity and what it means.
fn list() -> String {
    let longest = Kind::ALL.iter().map(|it| it.as_str().len()).max().unwrap_or_default();
    Kind::ALL.iter().fold(String::new(), |mut text, kind| {
        let (name, severity) = (kind.as_str(), kind.severity());
        let _infallible = writeln!(text, "{name:longest$}  {severity:7}  {}", kind.summary());
        text
    })
}
