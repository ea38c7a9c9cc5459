//! Everything compiled from one commit; it never changes.

mod index;
mod lists;
mod live;
mod paths;
mod rendered_values;
mod request_parser;
mod response_cache;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::classification::{
    ClassificationError, Conflicts, Explanation, Outcome, Version, classified, conclude, conflicts,
};
use crate::diagnostic::{Diagnostic, Place};
use crate::hierarchy::{Estate, GroupIndex};
use crate::mentioned::MentionedPaths;
use crate::model::{CommitId, Condition, GroupId, Node};

pub use index::Index;
pub use live::LiveSnapshot;
pub use request_parser::Request;

use rendered_values::Fragments;
use response_cache::ResponseCache;

/// The classifier of one commit.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The commit.
    pub commit: CommitId,
    /// Its groups, individual classifications and catalogues.
    pub estate: Estate,
    /// Where each group is written.
    pub origins: Arc<BTreeMap<GroupId, Place>>,
    /// The warnings that validation had.
    pub warnings: Vec<Diagnostic>,
    index: Index,
    fragments: Fragments,
    /// Found out when they are asked for the first time.
    mentioned: OnceLock<Arc<MentionedPaths>>,
}

impl Snapshot {
    /// Compiles what a commit says.
    pub fn new(
        commit: CommitId,
        estate: Estate,
        origins: Arc<BTreeMap<GroupId, Place>>,
        warnings: Vec<Diagnostic>,
    ) -> Self {
        let index = Index::new(&estate.hierarchy);
        let fragments = Fragments::new(&estate.hierarchy);
        Self { commit, estate, origins, warnings, index, fragments, mentioned: OnceLock::new() }
    }

    /// Compiles what another commit says, using what has been compiled where both say the same.
    #[must_use]
    pub fn amended(
        &self,
        commit: CommitId,
        estate: Estate,
        origins: Arc<BTreeMap<GroupId, Place>>,
        warnings: Vec<Diagnostic>,
    ) -> Self {
        let (before, after) = (&self.estate.hierarchy, &estate.hierarchy);
        let Some(changed) = before.changed_in(after) else {
            return Self::new(commit, estate, origins, warnings);
        };
        let index = self.index.amended(before, after, &changed);
        let index = index.unwrap_or_else(|| Index::new(after));
        let fragments = self.fragments.amended(before, after, &changed);
        Self { commit, estate, origins, warnings, index, fragments, mentioned: OnceLock::new() }
    }

    /// Classifies a node.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be found out whether a group matches.
    pub fn classify<'s>(&'s self, node: &'s Node) -> Result<Explanation<'s>, ClassificationError> {
        classify(&self.estate, &self.index, node)
    }

    /// Returns whether a rule reads facts: then nodes need facts to be classified as they should.
    pub fn reads_facts(&self) -> bool {
        let rules = self.estate.hierarchy.groups().filter_map(|it| it.rule.as_deref());
        rules.into_iter().any(Condition::reads_facts)
    }

    /// Returns the facts and trusted data that the groups' rules mention.
    pub fn mentioned(&self) -> &Arc<MentionedPaths> {
        self.mentioned.get_or_init(|| Arc::new(MentionedPaths::of(&self.estate.hierarchy)))
    }

    /// Returns the index of the groups' rules.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Writes the classified document of a node that some groups match, parents first.
    ///
    /// # Errors
    ///
    /// Returns where the leaves among them differ.
    pub fn classified(
        &self,
        name: &str,
        groups: &[GroupIndex],
        version: Version,
    ) -> Result<Vec<u8>, Conflicts<'_>> {
        self.classified_with(None, name, groups, version)
    }

    fn classified_with(
        &self,
        cache: Option<&ResponseCache>,
        name: &str,
        groups: &[GroupIndex],
        version: Version,
    ) -> Result<Vec<u8>, Conflicts<'_>> {
        let estate = &self.estate;
        if !estate.individuals.contains_key(name)
            && let Some(ready) = self.fragments.classified(cache, estate, name, groups, version)
        {
            return Ok(ready);
        }
        let node = Node::named(name);
        let explanation = conclude(estate, &node, groups);
        match &explanation.outcome {
            Outcome::Classified(result) => {
                Ok(classified(&explanation, result, version).to_string().into_bytes())
            }
            Outcome::Conflict(_) => Err(conflicts(estate, groups)),
        }
    }
}

/// Classifies a node by the index of an estate.
///
/// # Errors
///
/// Returns an error if it cannot be found out whether a group matches.
pub fn classify<'e>(
    estate: &'e Estate,
    index: &Index,
    node: &'e Node,
) -> Result<Explanation<'e>, ClassificationError> {
    let groups = index.matching(&estate.hierarchy, node)?;
    Ok(conclude(estate, node, &groups))
}
