//! Answering from a group repository, without a daemon.

use std::path::Path;

use anyhow::{Result, anyhow};

use super::EncSettings;
use super::node_input::{InputSources, NodeInput};
use super::request::with_advice;
use crate::classification::{Outcome, classify, conflict_report, enc_document};
use crate::cli::repository::RepositoryArgs;
use crate::cli::shell::word_of_shell;

impl EncSettings {
    /// Classifies the node in this process, by the same facts and trusted data that a daemon is sent.
    pub(super) fn offline(&self, directory: &Path, input: NodeInput) -> Result<String> {
        let repository = RepositoryArgs {
            directory: Some(directory.to_owned()),
            rev: self.rev.clone(),
            budget: self.budget.clone(),
        };
        let (node, sources) = input.into_node(&self.node);
        let estate = repository.estate()?;
        let explanation = classify(&estate, &node)?;
        match &explanation.outcome {
            Outcome::Classified(result) => Ok(enc_document(result)),
            Outcome::Conflict(conflicts) => {
                let report = conflict_report(&estate.hierarchy, conflicts);
                Err(anyhow!("{}", self.with_own_advice(&report, directory, &sources)))
            }
        }
    }

    /// Adds the command that shows the values of a conflict, by the same files.
    fn with_own_advice(&self, report: &str, directory: &Path, sources: &InputSources) -> String {
        let directory = directory.to_string_lossy();
        let facts = sources.facts.as_ref().map(|it| it.to_string_lossy());
        let mut arguments = vec![&*self.node, &*directory];
        arguments.extend(self.rev.as_deref().map(|it| ["--rev", it]).into_iter().flatten());
        arguments.extend(facts.as_deref().map(|it| ["--facts", it]).into_iter().flatten());
        let advice = with_advice(report, &arguments);
        match &sources.certificate {
            None => advice,
            // `clade explain` reads no certificates.
            Some(path) => format!(
                "{advice} Put the extensions of the certificate {} into a file for `--trusted`.",
                word_of_shell(&path.to_string_lossy())
            ),
        }
    }
}
