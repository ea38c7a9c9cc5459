//! `clade enc`

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::Args;

use super::Exit;
use super::node::facts_file;
use super::output::Output;
use super::repository::RepositoryArgs;
use crate::classification::{Outcome, classify, conflict_message, enc_document};
use crate::facts::{NodeFacts, with_certname};
use crate::model::Node;

/// Print the ENC document of a node, for Puppet's `external_nodes`
#[derive(Debug, Args)]
pub(super) struct Enc {
    /// The node's certname
    #[arg(value_name = "NODE")]
    node: String,
    /// The directory of the group repository
    #[arg(long, value_name = "DIR", env = "CLADE_REPO")]
    repo: PathBuf,
    /// A revision of the git repository instead of the files as they are
    #[arg(long, value_name = "REV")]
    rev: Option<String>,
    /// The directory with the facts of each node, `<certname>.json` or `.yaml`
    #[arg(long, value_name = "DIR")]
    facts_dir: Option<PathBuf>,
}

impl Enc {
    /// Prints the document, or a line with the reason: Puppet shows agents stdout only, and the
    /// server's log stderr.
    pub(super) fn run(self, output: &mut Output) -> Exit {
        match self.document().and_then(|document| output.data(&document)) {
            Ok(()) => Exit::Fine,
            Err(error) => {
                let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
                let reason = format!("clade enc: {}", causes.join(": ").replace('\n', " "));
                output.note(&reason);
                // If stdout is gone, stderr has it.
                let _gone = output.data(&format!("{reason}\n"));
                Exit::Findings
            }
        }
    }

    fn document(&self) -> Result<String> {
        check_certname(&self.node)?;
        let repository = RepositoryArgs { directory: self.repo.clone(), rev: self.rev.clone() };
        let facts = self.facts()?;
        let node = Node {
            name: self.node.clone(),
            fact: facts.fact,
            trusted: with_certname(facts.trusted, &self.node),
        };
        let estate = repository.estate()?;
        let explanation = classify(&estate, &node)?;
        match &explanation.outcome {
            Outcome::Classified(result) => Ok(enc_document(result)),
            Outcome::Conflict(conflicts) => {
                Err(anyhow!("{}", conflict_message(&estate.hierarchy, conflicts)))
            }
        }
    }

    /// Reads the node's facts; a node that never sent any has no file.
    fn facts(&self) -> Result<NodeFacts> {
        let Some(directory) = &self.facts_dir else { return Ok(NodeFacts::default()) };
        let candidates =
            ["json", "yaml", "yml"].map(|it| directory.join(format!("{}.{it}", self.node)));
        match candidates.iter().find(|path| path.exists()) {
            Some(path) => facts_file(path),
            None => Ok(NodeFacts::default()),
        }
    }
}

/// Refuses names that could lead elsewhere: a certname is part of a path.
fn check_certname(name: &str) -> Result<()> {
    let fits = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '_' | '-');
    if name.is_empty() || !name.chars().all(fits) || name.contains("..") || name.starts_with('.') {
        bail!("`{}` is not a certname", name.escape_debug());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certnames_lead_nowhere_else() {
        for name in ["web1.example.com", "a_b-c", "localhost"] {
            assert!(check_certname(name).is_ok(), "{name}");
        }
        for name in ["", "..", "../x", "a/b", "a b", ".hidden", "a..b", "x\n", "é"] {
            assert!(check_certname(name).is_err(), "{name}");
        }
    }
}
