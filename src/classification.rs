//! Classification: which classes, parameters, variables and environment a node gets, and why.
//!
//! 1. The groups whose rule, and every ancestor's, holds for the node.
//! 2. Of these the leaves: groups without a matching descendant.
//! 3. What each leaf inherits.
//! 4. Conflicts: leaves that differ in a value. One distinct environment among the leaves that
//!    trump wins; two such are a conflict; without any, all leaves must agree.
//! 5. The leaves' values together.
//! 6. The node's individual classification on top, which overrides without conflict.
//! 7. Facts in the strings of parameters and variables, if `clade.yaml` says so: last, so that all else
//!    compares what is written.
//!
//! The [`Explanation`] is what is computed; the short answer is a projection of it.

mod conflict;
mod conflict_text;
mod deciding;
mod enc;
mod error;
mod interpolation;
mod leaf_values;
mod matching;
mod merge;
mod overlap;
mod published;

use crate::hierarchy::{Estate, GroupIndex, Inherited};
use crate::model::{Individual, Node};

pub use conflict::{ConflictShare, ConflictingLeaves, Conflicts};
pub use conflict_text::{
    SEE_DETAILS, conflict_message, conflict_report, conflict_summary, keys_of_classes,
};
pub use enc::{enc_document, to_yaml11};
pub use error::{ClassificationError, ClassificationFault};
pub use interpolation::{
    EXPANDED_BYTES, Expander, ExpansionFault, FactReference, FactSource, IllegalReason, Template,
    WithheldFacts, has_dollar, references_of_estate, references_of_group,
};
pub use leaf_values::{LeafClass, LeafRow, LeafValues, all_have, leaves_below};
pub use matching::{Match, is_member, matches, matches_within};
pub use merge::{ClassSources, Final, SourcedValue, ValueSource};
pub use overlap::{Alarm, Differing, Evidence, Overlap, Pair, Rank, Setting, overlaps};
pub use published::{
    Version, classified, conflict_details, explained_values, explanation, explanation_fields,
    explanation_with, final_classification, hiera, match_explanations,
};

/// How a node is classified, and why.
#[derive(Clone, Debug)]
pub struct Explanation<'e> {
    /// The estate that answers.
    pub estate: &'e Estate,
    /// The node as it was used.
    pub node: &'e Node,
    /// The groups that match, parents first.
    pub matches: Vec<Match<'e>>,
    /// The matching groups without a matching descendant.
    pub leaves: Vec<GroupIndex>,
    /// What the leaves set and inherit.
    pub values: LeafValues<'e>,
    /// The values set for this node alone.
    pub individual: Option<&'e Individual>,
    /// What comes out.
    pub outcome: Outcome<'e>,
}

impl<'e> Explanation<'e> {
    /// Returns what each leaf inherits, in the order of the leaves: one at a time, since many leaves that inherit many
    /// values are too much to be in memory at once.
    pub fn inherited(&self) -> impl Iterator<Item = (GroupIndex, Inherited<'e>)> {
        self.leaves.iter().map(|leaf| (*leaf, self.estate.hierarchy.inherited(*leaf)))
    }

    /// Returns about how many bytes of memory it takes to hold what each leaf inherits at once.
    pub fn inherited_memory(&self) -> usize {
        self.values.memory_of_all(&self.estate.hierarchy, &self.leaves)
    }
}

/// What comes out of a classification.
#[derive(Clone, Debug)]
pub enum Outcome<'e> {
    /// The node has a classification.
    Classified(Final<'e>),
    /// Leaves differ.
    Conflict(Conflicts<'e>),
}

/// Classifies a node.
///
/// # Errors
///
/// Returns [`ClassificationError`] if it cannot be found out whether a group matches, or if facts cannot be
/// put into a value.
pub fn classify<'e>(
    estate: &'e Estate,
    node: &'e Node,
) -> Result<Explanation<'e>, ClassificationError> {
    conclude(estate, node, &matches(&estate.hierarchy, node)?, WithheldFacts::Refuse)
}

/// Returns where the leaves differ among the groups that match a node.
pub fn conflicts<'e>(estate: &'e Estate, groups: &[GroupIndex]) -> Conflicts<'e> {
    let leaves = estate.hierarchy.leaves(groups);
    conflict::find(&estate.hierarchy, &leaves, &LeafValues::of(&estate.hierarchy, &leaves))
}

/// Classifies a node of which it is known what groups match, parents first.
///
/// # Errors
///
/// Returns [`ClassificationError`] if facts cannot be put into a value.
pub fn conclude<'e>(
    estate: &'e Estate,
    node: &'e Node,
    groups: &[GroupIndex],
    withheld: WithheldFacts,
) -> Result<Explanation<'e>, ClassificationError> {
    let hierarchy = &estate.hierarchy;
    let matches = groups.iter().filter_map(|it| Match::of(hierarchy, *it)).collect();
    let leaves = hierarchy.leaves(groups);
    let values = LeafValues::of(hierarchy, &leaves);
    let individual = estate.individuals.get(&node.name);
    let conflicts = conflict::find(hierarchy, &leaves, &values);
    let outcome = if conflicts.is_empty() {
        let mut result = merge::merge(estate, &leaves, &values, individual);
        result.put_facts(estate, node, withheld)?;
        Outcome::Classified(result)
    } else {
        Outcome::Conflict(conflicts)
    };
    Ok(Explanation { estate, node, matches, leaves, values, individual, outcome })
}

#[cfg(test)]
mod tests;
