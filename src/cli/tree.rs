//! `clade explain`

pub(super) mod draw;
pub(super) mod group;
mod places;
mod remote;
mod shown;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use super::Exit;
use super::client::{IdentityArgs, server_of_environment};
use super::masks::MaskArgs;
use super::node::NodeArgs;
use super::output::{DataFormat, Output};
use super::repository::{BUDGET_OF_DAEMON, RepositoryArgs};
use crate::classification::{
    ClassificationFault, Explanation, Outcome, WithheldFacts, conclude, matches,
};
use crate::hierarchy::{Estate, GroupIndex};
use crate::masking::{MaskSetting, Masks};
use crate::model::{GroupId, Node};
use draw::ShownGroups;
use places::WrittenPlaces;

/// Explain the classification of a node: what it gets and where that is written, and which groups match by which
/// values
#[derive(Debug, Args)]
pub(super) struct ExplainCommand {
    /// The node's certname, such as `web1.example.com`
    #[arg(value_name = "NODE")]
    node: String,
    #[command(flatten)]
    repository: RepositoryArgs,
    #[command(flatten)]
    facts: NodeArgs,
    #[command(flatten)]
    masks: MaskArgs,
    /// Explain the node by its last check-in with a daemon: a URL, or the path of its unix socket [default: `CLADE_SERVER`, without DIR, --rev, --facts, --trusted and --commit-budget]
    #[arg(
        long,
        value_name = "URL",
        conflicts_with_all = ["directory", "rev", "facts", "trusted"],
        help_heading = "Daemon"
    )]
    server: Option<String>,
    #[command(flatten, next_help_heading = "Daemon")]
    identity: IdentityArgs,
    /// Explain why the node is in this group, or why not; a name or an id
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// Show the groups that do not match as well, each with the comparisons that it makes
    #[arg(long, conflicts_with = "group")]
    all: bool,
    /// The output format
    #[arg(long, value_enum, default_value = "human")]
    format: ExplainFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExplainFormat {
    /// A tree for people
    Human,
    /// The explanation document of the API
    Json,
    /// The same document as YAML
    Yaml,
}

impl ExplainFormat {
    /// Returns how data are written; nothing where they are drawn.
    fn data(self) -> Option<DataFormat> {
        match self {
            Self::Human => None,
            Self::Json => Some(DataFormat::Json),
            Self::Yaml => Some(DataFormat::Yaml),
        }
    }
}

impl ExplainCommand {
    pub(super) fn run(self, output: &mut Output) -> Result<Exit> {
        if self.repository.budget.is_given() && self.server.is_some() {
            bail!("{BUDGET_OF_DAEMON}");
        }
        let is_local = self.repository.is_given() || self.facts.is_given();
        let is_local = is_local || self.repository.budget.is_given();
        let daemon = || server_of_environment().filter(|_| !is_local);
        if let Some(server) = self.server.clone().or_else(daemon) {
            let explained = remote::ask(&server, &self.identity, &self.node, output)?;
            return match (&self.group, self.format.data()) {
                // The daemon's own document, whichever version of this program asks.
                (None, Some(format)) => explained.write(format, output),
                _ => {
                    let (estate, node) = explained.checked()?;
                    let masks = Masks::of_settings(&[MaskSetting::None]);
                    let places = |_: &Explanation<'_>| explained.places(&self.node);
                    // The daemon has masked the node.
                    self.explain(&estate, (&node, &masks), &places, output)
                }
            };
        }
        let (estate, loaded) = match self.repository.valid() {
            Err(error) if !is_local => {
                bail!("{error:#}; to ask a daemon, give --server URL")
            }
            valid => valid?,
        };
        let places = |explanation: &Explanation<'_>| WrittenPlaces::in_files(&loaded, explanation);
        let node = self.facts.node(&self.node, output)?;
        let exit = self.explain(&estate, (&node, &self.masks.masks()), &places, output)?;
        if self.format.data().is_none() {
            self.facts.note_absence(estate.hierarchy.reads_facts(), output);
        }
        Ok(exit)
    }

    /// Explains a node; `places` finds out where its values are written.
    fn explain(
        &self,
        estate: &Estate,
        (node, masks): (&Node, &Masks),
        places: &dyn Fn(&Explanation<'_>) -> WrittenPlaces,
        output: &mut Output,
    ) -> Result<Exit> {
        if let Some(wanted) = &self.group {
            let index = find(estate, wanted)?;
            let why = group::Membership::of(&estate.hierarchy, index, node).masked_by(masks);
            output.data(&match self.format.data() {
                None => why.draw(output.colour()),
                Some(format) => format.write(&why.to_value()),
            })?;
            return Ok(Exit::Fine);
        }
        let explained = matches(&estate.hierarchy, node)
            .and_then(|groups| conclude(estate, node, &groups, WithheldFacts::Mark));
        let explanation = match explained {
            Ok(explanation) => explanation,
            Err(error) => {
                // The condition at fault is shown where it stands; programs read a document or nothing.
                if let ClassificationFault::Rule(_) = error.cause
                    && let Some(index) = estate.hierarchy.find(error.group)
                    && self.format.data().is_none()
                {
                    let why =
                        group::Membership::of(&estate.hierarchy, index, node).masked_by(masks);
                    output.data(&why.draw(output.colour()))?;
                }
                return Err(error.into());
            }
        };
        output.data(&match self.format.data() {
            None => {
                let shown = if self.all { ShownGroups::All } else { ShownGroups::Matching };
                let places = places(&explanation);
                let explanation = shown::with_values_of(&explanation, &masks.node(node))?;
                draw::draw(&explanation, &places, (shown, masks), output.colour())
            }
            Some(format) => format.write(&shown::document(&explanation, masks)?),
        })?;
        Ok(match explanation.outcome {
            Outcome::Classified(_) => Exit::Fine,
            Outcome::Conflict(_) => Exit::Findings,
        })
    }
}

/// Finds a group by name or id.
fn find(estate: &Estate, wanted: &str) -> Result<GroupIndex> {
    let hierarchy = &estate.hierarchy;
    let id = wanted.parse::<GroupId>();
    if let Some(index) = id.as_ref().ok().and_then(|id| hierarchy.find(*id)) {
        return Ok(index);
    }
    let named: Vec<GroupIndex> = hierarchy
        .indexes()
        .filter(|index| hierarchy.group(*index).name.as_str() == wanted)
        .collect();
    match named.as_slice() {
        [only] => Ok(*only),
        [] if id.is_ok() => bail!("there is no group with the id `{wanted}`"),
        [] => {
            let names = hierarchy.groups().map(|group| group.name.as_str());
            match crate::diagnostic::closest(wanted, names) {
                Some(similar) => bail!("there is no group `{wanted}`; did you mean `{similar}`?"),
                None => bail!("there is no group `{wanted}`"),
            }
        }
        several => {
            let ids: Vec<String> =
                several.iter().map(|index| hierarchy.group(*index).id.to_string()).collect();
            bail!(
                "{} groups are called `{wanted}`; name one by id: {}",
                several.len(),
                ids.join(", ")
            )
        }
    }
}
