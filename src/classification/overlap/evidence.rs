//! What known nodes show of groups.

use std::collections::{BTreeMap, BTreeSet};

use super::setting::Setting;
use super::subject::{Subject, differences};
use crate::classification::deciding::Deciding;
use crate::classification::{Conflicts, Explanation, Outcome, classify};
use crate::hierarchy::{Estate, GroupIndex};
use crate::model::Node;

/// How much known nodes say for a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// A known node has it.
    Real,
    /// Known nodes are in both groups.
    Likely,
    /// Only the rules say that it can be.
    Possible,
}

/// What known nodes show: those of classification tests, or of a fleet.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    conflicts: BTreeMap<(GroupIndex, GroupIndex, Subject), Node>,
    inhabited: BTreeSet<GroupIndex>,
    examined: usize,
}

/// How many pairs of groups are noted: a node may be in conflict between any number of them.
const PAIRS: usize = 10_000;

/// How many pairs of groups are examined: among thousands of leaves of a node nearly all agree.
const EXAMINED: usize = 1_000_000;

impl Evidence {
    /// Notes what a node shows.
    pub fn add(&mut self, estate: &Estate, node: &Node) {
        if let Ok(explanation) = classify(estate, node) {
            self.note(&explanation);
        }
    }

    /// Notes what the classification of a node shows.
    pub fn note(&mut self, explanation: &Explanation<'_>) {
        let node = explanation.node;
        self.inhabited.extend(explanation.matches.iter().map(|it| it.group));
        let Outcome::Conflict(conflicts) = &explanation.outcome else { return };
        let group = |leaf: &GroupIndex| explanation.estate.hierarchy.group(*leaf);
        let leaves = explanation.leaves.iter();
        let deciding = Deciding::among(leaves.clone().map(group));
        let decisive: BTreeSet<GroupIndex> =
            leaves.filter(|leaf| deciding.has(group(leaf))).copied().collect();
        let groups = conflicts.groups();
        for (at, one) in groups.iter().enumerate() {
            for other in groups.iter().skip(at + 1) {
                if self.conflicts.len() >= PAIRS || self.examined >= EXAMINED {
                    return;
                }
                self.examined += 1;
                let is_between = |of: Subject| match of {
                    Subject::Values => differ_in_values(conflicts, *one, *other),
                    Subject::Environment => {
                        decisive.contains(one)
                            && decisive.contains(other)
                            && differences(conflicts, Setting::Environment, *one, *other)
                    }
                };
                for of in [Subject::Values, Subject::Environment] {
                    if is_between(of) {
                        let key = (*one, *other, of);
                        self.conflicts.entry(key).or_insert_with(|| node.clone());
                    }
                }
            }
        }
    }

    /// Adds what other nodes show.
    pub fn extend(&mut self, other: Self) {
        self.inhabited.extend(other.inhabited);
        for (key, node) in other.conflicts {
            if self.conflicts.len() >= PAIRS {
                return;
            }
            self.conflicts.entry(key).or_insert(node);
        }
    }

    /// Returns a known node on which two groups conflict.
    pub(super) fn node(&self, one: GroupIndex, other: GroupIndex, of: Subject) -> Option<&Node> {
        self.conflicts.get(&(one.min(other), one.max(other), of))
    }

    pub(super) fn rank(&self, one: GroupIndex, other: GroupIndex, of: Subject) -> Rank {
        let is_inhabited = |group: GroupIndex| self.inhabited.contains(&group);
        if self.node(one, other, of).is_some() {
            Rank::Real
        } else if is_inhabited(one) && is_inhabited(other) {
            Rank::Likely
        } else {
            Rank::Possible
        }
    }
}

fn differ_in_values(conflicts: &Conflicts<'_>, one: GroupIndex, other: GroupIndex) -> bool {
    conflicts.settings().any(|setting| {
        setting != Setting::Environment && differences(conflicts, setting, one, other)
    })
}
