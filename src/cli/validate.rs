//! `clade validate`

mod fleet;
mod pins;
mod stats;

use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;

use super::Exit;
use super::client::server_of_environment;
use super::nodes::NodesArgs;
use super::output::Output;
use super::repository::{LoadedRepository, RepositoryArgs};
use crate::diagnostic::{Format, ShownFindings};
use crate::validation::{Search, ShownAlarms, Strictness};
use crate::wording::counted;
use fleet::Fleet;

/// How many findings of a kind people are shown.
const SHOWN: usize = 20;

/// Validate a group repository before it is merged
///
/// With nodes (--facts, --puppetdb or --server), conflicts of nodes are errors, groups that no node is in are reported, and so are pins to nodes that were not seen, if the policy asks for that.
#[derive(Debug, Args)]
pub(super) struct ValidateCommand {
    #[command(flatten)]
    repository: RepositoryArgs,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    #[command(flatten)]
    nodes: NodesArgs,
    #[command(flatten)]
    shown: ShownArgs,
    /// Do not fail if a node cannot be read; it is still listed
    #[arg(long, requires = "nodes")]
    ignore_bad_facts: bool,
}

/// How much of what is found is shown.
#[derive(Debug, Args)]
struct ShownArgs {
    /// Show every finding instead of the first 20 of each kind; the formats for programs have all
    #[arg(long)]
    all: bool,
    /// Count the findings by kind and by file, most first, instead of showing them
    #[arg(long)]
    stats: bool,
    /// Show every possible conflict instead of the first page of them
    #[arg(long)]
    all_conflicts: bool,
}

impl ShownArgs {
    fn alarms(&self) -> ShownAlarms {
        if self.all || self.all_conflicts { ShownAlarms::All } else { ShownAlarms::Page }
    }

    fn findings(&self) -> ShownFindings {
        match self.alarms() {
            ShownAlarms::All => ShownFindings::All,
            ShownAlarms::Page => ShownFindings::FirstOfEachKind(SHOWN),
        }
    }
}

impl ValidateCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        if self.shown.stats && !matches!(self.format, Format::Human | Format::Json) {
            bail!("`--stats` is written with `--format human` or `json`");
        }
        let mut loaded = self.repository.search(self.first_search())?;
        let unread = self.repository.unread(&loaded)?;
        loaded.checked.add(unread);
        let fleet = self.fleet(&loaded, output)?;
        for bad in &fleet.read.unreadable {
            output.note(&format!("warning: {bad}"));
        }
        let unreadable = fleet.read.unreadable.len();
        // Errors that nodes show must not end the search that they rank.
        loaded.checked.find_conflicts(fleet.evidence, self.shown.alarms());
        loaded.checked.add(fleet.diagnostics);
        let shown = self.shown.findings();
        let text = if self.shown.stats {
            stats::write(&loaded.report(), self.format, shown, output.page())
        } else {
            loaded.render(self.format, output.colour(), shown)
        };
        output.data(&text)?;
        let is_valid = loaded.checked.is_valid();
        // The process ends: the system takes its memory back at once, and not a value at a time.
        std::mem::forget(loaded);
        if unreadable > 0 && !self.ignore_bad_facts {
            output.note(&format!(
                "error: {} could not be read; --ignore-bad-facts continues without {}",
                counted(unreadable, "facts file"),
                if unreadable == 1 { "it" } else { "them" },
            ));
            return Ok(Exit::Failed);
        }
        Ok(if is_valid { Exit::Fine } else { Exit::Findings })
    }

    /// Returns what is looked for when the files are read. What nodes show decides which conflicts are on the first page;
    /// without any, they are searched for while groups are checked.
    fn first_search(&self) -> Search {
        let may_have_nodes = self.nodes.is_given() || server_of_environment().is_some();
        match self.shown.alarms() {
            ShownAlarms::Page if !may_have_nodes => Search::Everything,
            ShownAlarms::Page | ShownAlarms::All => Search::WithoutConflicts,
        }
    }

    /// Classifies the nodes that the command line names, or those of the daemon that the environment
    /// names if a policy needs nodes.
    fn fleet(&self, loaded: &LoadedRepository, output: &mut Output) -> Result<Fleet> {
        let policy = loaded.checked.layout().policy.groups;
        let needy: Vec<&str> =
            [(policy.unmatched_groups, "`unmatched_groups`"), (policy.stale_pins, "`stale_pins`")]
                .into_iter()
                .filter(|(strictness, _)| *strictness != Strictness::Off)
                .map(|(_, name)| name)
                .collect();
        let is_of_environment = !needy.is_empty() && server_of_environment().is_some();
        if self.nodes.is_given() || is_of_environment {
            return fleet::check(&self.nodes, &loaded.checked, Timestamp::now(), output);
        }
        if !needy.is_empty() {
            output.note(&format!(
                "note: not checked: {}; pass nodes by --facts DIR, --puppetdb URL or --server URL",
                needy.join(" and ")
            ));
        }
        Ok(Fleet::default())
    }
}
