//! `clade diff`: which nodes a change affects.

mod daemon;
mod human;
mod markdown;
mod range;
mod report;
mod side;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use rayon::prelude::*;

use super::Exit;
use super::masks::MaskArgs;
use super::nodes::NodesArgs;
use super::output::Output;
use super::repository::BudgetArgs;
use crate::impact::{Impact, StateComparison, StateFiles, Survey};
use crate::mentioned::MentionedPaths;
use crate::model::Node;
use crate::wording::counted;
use daemon::DaemonReply;
use range::Range;
use report::DiffReport;
use side::LoadedSide;

/// How long a daemon may compare its nodes.
const COMPARISON_TIMEOUT: Duration = Duration::from_mins(10);

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
    #[command(flatten)]
    masks: MaskArgs,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: DiffFormat,
    /// Exit with 1 if the classification of a node changes, or is not known before and after
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
        let comparison =
            StateComparison::new(base.side()?, head.side()?).masked_by(self.masks.masks());
        let (mut impact, unreadable) = self.gather([&base, &head], &comparison, output)?;
        for bad in &unreadable {
            output.note(&format!("warning: {bad}"));
        }
        let text = |side: &LoadedSide, path: &str| side.text(path).map(<[u8]>::to_vec);
        impact.locate(
            &StateFiles { side: base.side()?, read: &|path| text(&base, path) },
            &StateFiles { side: head.side()?, read: &|path| text(&head, path) },
        );
        let report =
            DiffReport { base: &base, head: &head, impact: &impact, unreadable: &unreadable };
        match self.format {
            DiffFormat::Human => {
                let colour = output.colour();
                output.data_in_parts(|to| human::write(&report, colour, to))?;
            }
            DiffFormat::Markdown => output.data(&markdown::write(&report))?,
            DiffFormat::Json => output.json(&report)?,
            DiffFormat::Yaml => output.data_in_parts(|to| report.write_yaml(to))?,
        }
        if !unreadable.is_empty() && !self.ignore_bad_facts {
            output.note(&format!(
                "error: {} could not be read; --ignore-bad-facts continues without {}",
                counted(unreadable.len(), "facts file"),
                if unreadable.len() == 1 { "it" } else { "them" },
            ));
            return Ok(Exit::Failed);
        }
        // What cannot be evaluated on either side may change all the same.
        let unknown = impact.counts.errors_staying > 0;
        let found = self.exit_code && (impact.changed() > 0 || unknown);
        Ok(if found { Exit::Findings } else { Exit::Fine })
    }

    /// Returns what the change does to the nodes, and why some of them could not be read. A daemon that
    /// knows both commits compares its nodes itself.
    fn gather(
        &self,
        sides: [&LoadedSide; 2],
        comparison: &StateComparison<'_>,
        output: &mut Output,
    ) -> Result<(Impact, Vec<String>)> {
        let commits = sides.map(LoadedSide::commit);
        if let [Some(old), Some(new)] = commits
            && let Some(daemon) = self.nodes.daemon(COMPARISON_TIMEOUT, output)?
        {
            match daemon::ask(&daemon, [old, new], comparison)? {
                DaemonReply::Compared(impact, unreadable) => return Ok((impact, unreadable)),
                DaemonReply::Declined(reason) => note_fetched(&reason, output),
            }
        }
        let mut survey = Survey::default();
        let mut compare_all = |nodes: &[Node]| {
            let compare = |node: &Node| (node.name.clone(), comparison.node(node));
            survey.extend(nodes.par_iter().map(compare).collect::<Vec<_>>());
        };
        let read = self.nodes.read(&mentioned(sides)?, &mut compare_all, output)?;
        if commits.contains(&None) && self.nodes.names_daemon() {
            note_fetched("it knows commits, and not a working tree", output);
        }
        let (groups, node_files) = (comparison.groups().to_vec(), comparison.node_files().to_vec());
        Ok((Impact::gather(groups, node_files, survey)?, read.unreadable))
    }
}

/// Says why a daemon does not compare its nodes itself.
fn note_fetched(reason: &str, output: &mut Output) {
    output.note(&format!("note: the nodes of the daemon are fetched and compared here: {reason}"));
}

/// Returns the facts that a comparison of two states looks at.
fn mentioned([base, head]: [&LoadedSide; 2]) -> Result<MentionedPaths> {
    let states = [base.side()?.estate, head.side()?.estate];
    let [base, head] = states.map(MentionedPaths::of);
    Ok(base.union(&head).with_mixtures(states))
}
