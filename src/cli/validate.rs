//! `clade validate`

mod fleet;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::Exit;
use super::output::Output;
use super::repository::RepositoryArgs;
use crate::classification::Evidence;
use crate::diagnostic::Format;
use crate::validation::{Search, ShownAlarms};

/// Validate a group repository before it is merged
#[derive(Debug, Args)]
pub(super) struct ValidateCommand {
    #[command(flatten)]
    repository: RepositoryArgs,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    /// A directory of facts files, as `clade diff` takes it: conflicts of nodes are errors, and rules that no node meets are reported
    #[arg(long, value_name = "DIR")]
    facts: Option<PathBuf>,
    /// Show every possible conflict instead of the first page of them
    #[arg(long)]
    all_conflicts: bool,
    /// Do not fail if a facts file cannot be read; it is still listed
    #[arg(long, requires = "facts")]
    ignore_bad_facts: bool,
}

impl ValidateCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        // What nodes show decides what is on the first page.
        let mut loaded = self.repository.search(Search::WithoutConflicts)?;
        let unread = self.repository.unread(loaded.checked.layout())?;
        loaded.checked.add(unread);
        let mut unreadable = 0;
        let (mut evidence, mut found) = (Evidence::default(), Vec::new());
        if let Some(directory) = &self.facts {
            let fleet = fleet::check(directory, &loaded.checked)?;
            for bad in &fleet.read.unreadable {
                output.note(&format!("warning: {bad}"));
            }
            unreadable = fleet.read.unreadable.len();
            (evidence, found) = (fleet.evidence, fleet.diagnostics);
        }
        let shown = if self.all_conflicts { ShownAlarms::All } else { ShownAlarms::Page };
        // Errors that nodes show must not end the search that they rank.
        loaded.checked.find_conflicts(evidence, shown);
        loaded.checked.add(found);
        let text = loaded.render(self.format, output.colour());
        output.data(&text)?;
        if unreadable > 0 && !self.ignore_bad_facts {
            output.note(&format!(
                "error: {unreadable} facts files could not be read; --ignore-bad-facts continues without them"
            ));
            return Ok(Exit::Failed);
        }
        Ok(if loaded.checked.is_valid() { Exit::Fine } else { Exit::Findings })
    }
}
