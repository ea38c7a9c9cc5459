//! Everything compiled from one commit; it never changes.

mod answered_node;
mod index;
mod lists;
mod live;
mod paths;
mod received;
mod rendered_group;
mod rendered_room;
mod rendered_tail;
mod rendered_values;
mod request_parser;
mod response_cache;
mod shared_bytes;
mod value_facts;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::classification::{
    ClassificationError, Conflicts, Explanation, FactSource as _, Outcome, Version, WithheldFacts,
    classified, conclude, conflicts,
};
use crate::diagnostic::{Diagnostic, Place};
use crate::hierarchy::{Estate, GroupIndex};
use crate::mentioned::MentionedPaths;
use crate::model::{CommitId, Condition, GroupId, Node};

pub use answered_node::AnsweredNode;
pub use index::Index;
pub use live::LiveSnapshot;
pub use request_parser::Request;

use rendered_values::Fragments;
use response_cache::ResponseCache;
use value_facts::ValueFacts;

/// The classifier of one commit.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The commit.
    pub commit: CommitId,
    /// Its groups, individual classifications and catalogues.
    pub estate: Estate,
    /// Where each group is written.
    pub origins: Arc<BTreeMap<GroupId, Place>>,
    /// Where the values set for each node alone are written, by certname.
    pub node_origins: Arc<BTreeMap<String, Place>>,
    /// The warnings that validation had.
    pub warnings: Vec<Arc<Diagnostic>>,
    index: Index,
    fragments: Fragments,
    value_facts: ValueFacts,
    /// Found out when they are asked for the first time, unless those of the snapshot before are known to be the same.
    mentioned: OnceLock<Arc<MentionedPaths>>,
}

impl Snapshot {
    /// Compiles what a commit says.
    pub fn new(
        commit: CommitId,
        estate: Estate,
        origins: Arc<BTreeMap<GroupId, Place>>,
        warnings: Vec<Arc<Diagnostic>>,
    ) -> Self {
        let index = Index::new(&estate.hierarchy);
        Self::indexed(commit, estate, index, origins, warnings)
    }

    /// Compiles what a commit says whose rules have been compiled.
    pub fn indexed(
        commit: CommitId,
        estate: Estate,
        index: Index,
        origins: Arc<BTreeMap<GroupId, Place>>,
        warnings: Vec<Arc<Diagnostic>>,
    ) -> Self {
        let value_facts = ValueFacts::of(&estate);
        let index = index.with_values(value_facts.paths());
        let fragments = Fragments::new(&estate.hierarchy, estate.interpolation);
        let (mentioned, node_origins) = (OnceLock::new(), Arc::default());
        Self {
            commit,
            estate,
            origins,
            node_origins,
            warnings,
            index,
            fragments,
            value_facts,
            mentioned,
        }
    }

    /// Adds where the values set for each node alone are written. Those of the snapshot that this was made of are
    /// shared if they are the same.
    #[must_use]
    pub fn with_node_origins(
        self,
        origins: BTreeMap<String, Place>,
        before: Option<&Self>,
    ) -> Self {
        let known = before.map(|it| &it.node_origins).filter(|it| ***it == origins);
        let node_origins = known.map_or_else(|| Arc::new(origins), Arc::clone);
        Self { node_origins, ..self }
    }

    /// Compiles what another commit says, using what has been compiled where both say the same.
    #[must_use]
    pub fn amended(
        &self,
        commit: CommitId,
        estate: Estate,
        origins: Arc<BTreeMap<GroupId, Place>>,
        warnings: Vec<Arc<Diagnostic>>,
    ) -> Self {
        let (before, after) = (&self.estate.hierarchy, &estate.hierarchy);
        let is_same = self.estate.interpolation == estate.interpolation;
        if !is_same {
            return Self::new(commit, estate, origins, warnings);
        }
        let renumbering = before.renumbering(after);
        let index = self.index.amended(before, after, &renumbering);
        let value_facts = ValueFacts::of(&estate).sharing(&self.value_facts);
        let index = index.unwrap_or_else(|| Index::new(after)).with_values(value_facts.paths());
        let fragments = self.fragments.amended(before, after, &renumbering);
        let is_same = value_facts.shares_paths_of(&self.value_facts);
        let known =
            self.mentioned.get().filter(|it| is_same && it.stay(before, after, &renumbering));
        let mentioned = known.map_or_else(OnceLock::new, |it| OnceLock::from(Arc::clone(it)));
        let node_origins = Arc::default();
        Self {
            commit,
            estate,
            origins,
            node_origins,
            warnings,
            index,
            fragments,
            value_facts,
            mentioned,
        }
    }

    /// Classifies a node.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be found out whether a group matches, or if facts cannot be put into a
    /// value.
    pub fn classify<'s>(
        &'s self,
        node: &'s Node,
        withheld: WithheldFacts,
    ) -> Result<Explanation<'s>, ClassificationError> {
        classify(&self.estate, &self.index, node, withheld)
    }

    /// Returns whether a rule or a value reads facts: then nodes need facts to be classified as they should.
    pub fn reads_facts(&self) -> bool {
        let rules = self.estate.hierarchy.groups().filter_map(|it| it.rule.as_deref());
        rules.into_iter().any(Condition::reads_facts)
            || self.value_facts.paths().paths().any(|it| it.is_of_fact())
    }

    /// Returns the facts and trusted data that rules and values mention.
    pub fn mentioned(&self) -> &Arc<MentionedPaths> {
        self.mentioned.get_or_init(|| Arc::new(MentionedPaths::of(&self.estate)))
    }

    /// Returns whether the values that some groups give a node have facts of the node in them. Values that are
    /// set for the node alone do not count.
    pub fn puts_facts(&self, groups: &[GroupIndex]) -> bool {
        self.value_facts.are_in_values_of(groups)
    }

    /// Returns whether the answer of a node follows from the groups that match it: all nodes with these groups get
    /// the same.
    pub fn is_decided_by(&self, groups: &[GroupIndex], name: &str) -> bool {
        !self.estate.individuals.contains_key(name) && !self.puts_facts(groups)
    }

    /// Returns the places of some groups in another snapshot, if nodes of which these groups decide get the same from it,
    /// but for the order of keys in values.
    pub(crate) fn alike_in(
        &self,
        other: &Self,
        groups: &[GroupIndex],
    ) -> Option<Box<[GroupIndex]>> {
        let (here, there) = (&self.estate, &other.estate);
        let is_same = here.interpolation == there.interpolation;
        is_same.then(|| here.hierarchy.alike_in(&there.hierarchy, groups)).flatten()
    }

    /// Returns the index of the groups' rules.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Writes the classified document of a node that some groups match, parents first.
    ///
    /// # Errors
    ///
    /// Returns why there is none.
    pub fn classified(
        &self,
        node: &AnsweredNode<'_>,
        groups: &[GroupIndex],
        version: Version,
    ) -> Result<Vec<u8>, NoDocument<'_>> {
        self.classified_with(None, node, groups, version)
    }

    fn classified_with(
        &self,
        cache: Option<&ResponseCache>,
        node: &AnsweredNode<'_>,
        groups: &[GroupIndex],
        version: Version,
    ) -> Result<Vec<u8>, NoDocument<'_>> {
        let estate = &self.estate;
        let facts = node.mentioned(self.value_facts.paths());
        if !estate.individuals.contains_key(node.name())
            && let Some(ready) =
                self.fragments.classified(cache, estate, node.name(), &facts, groups, version)
        {
            return Ok(ready);
        }
        let explanation = conclude(estate, facts.node(), groups, WithheldFacts::Refuse);
        let explanation = explanation.map_err(NoDocument::Failed)?;
        match &explanation.outcome {
            Outcome::Classified(result) => {
                Ok(classified(&explanation, result, version).to_string().into_bytes())
            }
            Outcome::Conflict(_) => Err(NoDocument::Conflict(conflicts(estate, groups))),
        }
    }
}

/// Why there is no classified document of a node.
#[derive(Debug)]
pub enum NoDocument<'s> {
    /// The leaves among its groups differ.
    Conflict(Conflicts<'s>),
    /// Facts could not be put into a value.
    Failed(ClassificationError),
}

/// Classifies a node by the index of an estate.
///
/// # Errors
///
/// Returns an error if it cannot be found out whether a group matches, or if facts cannot be put into a value.
pub fn classify<'e>(
    estate: &'e Estate,
    index: &Index,
    node: &'e Node,
    withheld: WithheldFacts,
) -> Result<Explanation<'e>, ClassificationError> {
    let groups = index.matching(&estate.hierarchy, node)?;
    conclude(estate, node, &groups, withheld)
}
