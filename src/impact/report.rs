//! The impact of a change on a set of nodes: nodes with the same change stand together.

use super::changed_key::line_of;
use super::groups::GroupChange;
use super::node_files::NodeFileChange;
use super::nodes::{ChangeRef, Difference, ReportEntry};
use super::survey::{NodeCounts, Survey, SurveyTooLarge};

/// What a change does to a set of nodes.
#[derive(Debug, Default)]
pub struct Impact {
    /// The groups that differ.
    pub groups: Vec<GroupChange>,
    /// The nodes whose own values differ.
    pub node_files: Vec<NodeFileChange>,
    /// How many nodes were compared.
    pub nodes: usize,
    /// How many of them have no classification.
    pub counts: NodeCounts,
    /// The nodes that get something else, those with the same change together; the most nodes
    /// first.
    pub entries: Vec<ReportEntry>,
}

/// The setting that [`CausingChange::Interpolation`] is of.
pub(super) const INTERPOLATION: &str = "interpolate";

/// A change that causes something.
#[derive(Clone, Copy, Debug)]
pub enum CausingChange<'i> {
    /// Of a group.
    Group(&'i GroupChange),
    /// Of the values set for one node alone.
    NodeFile(&'i NodeFileChange),
    /// Of `interpolate` in `clade.yaml`.
    Interpolation,
}

impl CausingChange<'_> {
    /// Returns the line of what causes a difference.
    pub fn line(&self, of: &Difference) -> Option<u32> {
        let (keys, line) = match self {
            Self::Group(it) => (&it.keys, it.line),
            Self::NodeFile(it) => (&it.keys, it.line),
            Self::Interpolation => return None,
        };
        line_of(keys, of).or(line)
    }
}

impl Impact {
    /// Gathers the changes of nodes.
    ///
    /// # Errors
    ///
    /// Returns an error if the survey has not kept all that it found.
    pub fn gather(
        groups: Vec<GroupChange>,
        node_files: Vec<NodeFileChange>,
        survey: Survey,
    ) -> Result<Self, SurveyTooLarge> {
        let (nodes, counts, mut entries) = survey.finish()?;
        for entry in &mut entries {
            entry.nodes.sort_unstable();
        }
        entries.sort_by(|a, b| (b.nodes.len(), &a.nodes).cmp(&(a.nodes.len(), &b.nodes)));
        Ok(Self { groups, node_files, nodes, counts, entries })
    }

    /// Returns how many nodes get something else.
    pub fn changed(&self) -> usize {
        self.entries.iter().map(|it| it.nodes.len()).sum()
    }

    /// Returns a change that causes something.
    pub fn cause(&self, change: ChangeRef) -> Option<CausingChange<'_>> {
        match change {
            ChangeRef::Group(at) => self.groups.get(at).map(CausingChange::Group),
            ChangeRef::NodeFile(at) => self.node_files.get(at).map(CausingChange::NodeFile),
            ChangeRef::Interpolation => Some(CausingChange::Interpolation),
        }
    }
}
