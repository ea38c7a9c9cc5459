//! `clade classify`

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::Exit;
use super::node::NodeArgs;
use super::output::{DataFormat, Output};
use super::repository::RepositoryArgs;
use super::shell::word_of_shell;
use crate::classification::{
    self, Outcome, Version, classify, conflict_details, conflict_message, conflict_summary,
};

/// Print the classification of a node, as the API answers it
#[derive(Debug, Args)]
pub(super) struct ClassifyCommand {
    /// The node's certname, such as `web1.example.com`; here any text counts as one, unlike for `clade enc`
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    repository: RepositoryArgs,
    #[command(flatten)]
    facts: NodeArgs,
    /// The output format, JSON by default; with it, a conflict is written as the API answers it
    #[arg(long, value_enum)]
    format: Option<DataFormat>,
}

impl ClassifyCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let node = self.facts.node(&self.node, output)?;
        let estate = self.repository.estate()?;
        if self.format.is_none() {
            self.facts.note_absence(estate.hierarchy.reads_facts(), output);
        }
        let explanation = classify(&estate, &node)?;
        match &explanation.outcome {
            Outcome::Classified(result) => {
                let answer = classification::classified(&explanation, result, Version::V1);
                output.data(&self.format.unwrap_or(DataFormat::Json).write(&answer))?;
                Ok(Exit::Fine)
            }
            Outcome::Conflict(conflicts) => {
                if let Some(format) = self.format {
                    output.data(&format.write(&json!({
                        "kind": "classification-conflict",
                        "msg": conflict_message(&estate.hierarchy, conflicts),
                        "details": conflict_details(&estate.hierarchy, conflicts),
                    })))?;
                } else {
                    let summary = conflict_summary(&estate.hierarchy, conflicts);
                    output.note(&format!("error: {summary}"));
                    output.note(&format!(
                        "help: `clade explain {}{}{}` shows the values side by side",
                        word_of_shell(&self.node),
                        self.repository.words(),
                        self.facts.words()
                    ));
                }
                Ok(Exit::Findings)
            }
        }
    }
}
