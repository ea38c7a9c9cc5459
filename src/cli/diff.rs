//! `clade diff`: which nodes a change affects.

mod human;
mod markdown;
mod range;
mod report;
mod side;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use rayon::prelude::*;

use super::Exit;
use super::nodes::NodesArgs;
use super::output::{DataFormat, Output};
use super::repository::BudgetArgs;
use crate::impact::{Impact, StateComparison, StateFiles, Survey};
use crate::model::Node;
use range::Range;
use report::DiffReport;
use side::LoadedSide;

/// Show which nodes a change of groups affects, and why: what each node gets before and after
#[derive(Debug, Args)]
pub(super) struct DiffCommand {
    /// The revision before the change, or both: `BASE..HEAD`, or `BASE...HEAD` to compare with their merge base
    base: String,
    /// The revision after it [default: the working tree]
    head: Option<String>,
    /// The directory of the group repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    repo: PathBuf,
    #[command(flatten)]
    budget: BudgetArgs,
    #[command(flatten)]
    nodes: NodesArgs,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: DiffFormat,
    /// Exit with 1 if the classification of a node changes
    #[arg(long)]
    exit_code: bool,
    /// Do not fail if a facts file cannot be read; it is still listed
    #[arg(long)]
    ignore_bad_facts: bool,
}

/// The output format.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DiffFormat {
    /// For people
    Human,
    /// A comment for a pull request
    Markdown,
    /// One JSON object
    Json,
    /// The same object as YAML
    Yaml,
}

impl DiffCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        let range = Range::parse(&self.base, self.head.as_deref())?;
        let [base, head] = range.states(&self.repo)?;
        let base = LoadedSide::load(self.repo.clone(), base, self.budget.clone())?;
        let head = LoadedSide::load(self.repo.clone(), head, self.budget.clone())?;
        let comparison = StateComparison::new(base.side()?, head.side()?);
        let mut survey = Survey::default();
        let mut compare_all = |nodes: &[Node]| {
            let compare = |node: &Node| (node.name.clone(), comparison.node(node));
            survey.extend(nodes.par_iter().map(compare).collect::<Vec<_>>());
        };
        let read = self.nodes.read(&mut compare_all, output)?;
        for bad in &read.unreadable {
            output.note(&format!("warning: {bad}"));
        }
        let (groups, node_files) = (comparison.groups(), comparison.node_files());
        let mut impact = Impact::gather(groups.to_vec(), node_files.to_vec(), survey);
        let text = |side: &LoadedSide, path: &str| side.text(path).map(<[u8]>::to_vec);
        impact.locate(
            &StateFiles { side: base.side()?, read: &|path| text(&base, path) },
            &StateFiles { side: head.side()?, read: &|path| text(&head, path) },
        );
        let report =
            DiffReport { base: &base, head: &head, impact: &impact, unreadable: &read.unreadable };
        let text = match self.format {
            DiffFormat::Human => human::write(&report, output.colour()),
            DiffFormat::Markdown => markdown::write(&report),
            DiffFormat::Json => DataFormat::Json.write(&report.to_value()),
            DiffFormat::Yaml => DataFormat::Yaml.write(&report.to_value()),
        };
        output.data(&text)?;
        if !read.unreadable.is_empty() && !self.ignore_bad_facts {
            output.note(&format!(
                "error: {} facts files could not be read; --ignore-bad-facts continues without them",
                read.unreadable.len()
            ));
            return Ok(Exit::Failed);
        }
        let found = self.exit_code && impact.changed() > 0;
        Ok(if found { Exit::Findings } else { Exit::Fine })
    }
}
