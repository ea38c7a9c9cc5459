//! Answering from a group repository, without a daemon.

use std::path::Path;

use anyhow::{Result, anyhow};

use super::EncSettings;
use super::request::with_advice;
use crate::classification::{Outcome, classify, conflict_report, enc_document};
use crate::cli::repository::{BudgetArgs, RepositoryArgs};
use crate::facts::{FactsDirectory, NodeFacts, with_certname};
use crate::model::Node;

impl EncSettings {
    /// Classifies the node in this process.
    pub(super) fn offline(&self, directory: &Path) -> Result<String> {
        let repository = RepositoryArgs {
            directory: Some(directory.to_owned()),
            rev: self.rev.clone(),
            budget: BudgetArgs::default(),
        };
        let facts = self.facts_of_any_form()?;
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
                let directory = directory.to_string_lossy();
                let mut arguments = vec![&*self.node, &*directory];
                arguments.extend(self.rev.as_deref().map(|it| ["--rev", it]).into_iter().flatten());
                let report = conflict_report(&estate.hierarchy, conflicts);
                Err(anyhow!("{}", with_advice(&report, &arguments)))
            }
        }
    }

    /// Reads the node's facts; a node that never sent any has no file.
    fn facts_of_any_form(&self) -> Result<NodeFacts> {
        let Some(directory) = &self.facts_dir else { return Ok(NodeFacts::default()) };
        Ok(FactsDirectory::new(directory.clone()).facts(&self.node)?.unwrap_or_default())
    }
}
