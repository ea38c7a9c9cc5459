//! What known nodes show of groups.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use super::conflicting_pairs::ConflictingPairs;
use super::subject::{PairKey, Subject};
use crate::classification::{Explanation, Outcome, classify};
use crate::hierarchy::{Estate, GroupIndex};
use crate::model::{Node, map_memory};

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
    conflicts: BTreeMap<PairKey, Arc<Node>>,
    inhabited: BTreeSet<GroupIndex>,
    /// The digests of leaves that were in conflict, of nodes that have no values of their own: other nodes of the same
    /// leaves show the same.
    leaves: BTreeSet<u64>,
    /// How many steps were taken to find conflicts.
    steps: usize,
    /// How many bytes of memory the nodes take that show conflicts.
    memory: usize,
}

/// How many pairs of groups are noted: a node may be in conflict between any number of them.
const PAIRS: usize = 10_000;

/// How many bytes of memory the nodes take that are noted with them, about: what rules mention of one may be large.
const MEMORY: usize = 64 << 20;

/// How many steps are taken for one node.
const STEPS_OF_NODE: usize = 100_000;

/// How many steps are taken for all nodes: a hundred thousand may have one conflict.
const STEPS: usize = 50_000_000;

impl Evidence {
    /// Adds what a node shows.
    pub fn add(&mut self, estate: &Estate, node: &Node) {
        if let Ok(explanation) = classify(estate, node) {
            self.extend(self.shown_by(&explanation));
        }
    }

    /// Returns what the classification of a node shows: of conflicts only if there is room for more here.
    #[must_use]
    pub fn shown_by(&self, explanation: &Explanation<'_>) -> Self {
        let inhabited = explanation.matches.iter().map(|it| it.group).collect();
        let conflicts = match &explanation.outcome {
            Outcome::Conflict(conflicts) if !self.has_enough() => conflicts,
            _ => return Self { inhabited, ..Self::default() },
        };
        let leaves = explanation.individual.is_none().then(|| digest(&explanation.leaves));
        if leaves.is_some_and(|it| self.leaves.contains(&it)) {
            return Self { inhabited, ..Self::default() };
        }
        let pairs = ConflictingPairs::of(explanation, conflicts, PAIRS, STEPS_OF_NODE);
        let (found, left) = pairs.into_parts();
        let node = Arc::new(explanation.node.clone());
        let memory = map_memory(&node.fact) + map_memory(&node.trusted);
        let conflicts = found.into_iter().map(|it| (it, Arc::clone(&node))).collect();
        let leaves = leaves.into_iter().collect();
        Self { conflicts, inhabited, leaves, steps: STEPS_OF_NODE - left, memory }
    }

    /// Adds what other nodes show: of conflicts only as long as there is room.
    pub fn extend(&mut self, other: Self) {
        self.inhabited.extend(other.inhabited);
        if self.has_enough() {
            return;
        }
        let is_known = !other.leaves.is_empty() && other.leaves.is_subset(&self.leaves);
        if is_known {
            return;
        }
        self.leaves.extend(other.leaves);
        self.steps += other.steps;
        let mut shows_more = false;
        for (key, node) in other.conflicts {
            if self.conflicts.len() >= PAIRS {
                break;
            }
            if let Entry::Vacant(entry) = self.conflicts.entry(key) {
                entry.insert(node);
                shows_more = true;
            }
        }
        if shows_more {
            self.memory += other.memory;
        }
    }

    /// Returns whether no more conflicts are noted.
    fn has_enough(&self) -> bool {
        self.conflicts.len() >= PAIRS || self.memory >= MEMORY || self.steps >= STEPS
    }

    /// Returns a known node on which two groups conflict.
    pub(super) fn node(
        &self,
        one: GroupIndex,
        other: GroupIndex,
        of: Subject,
    ) -> Option<&Arc<Node>> {
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

fn digest(leaves: &[GroupIndex]) -> u64 {
    let mut hasher = DefaultHasher::new();
    leaves.hash(&mut hasher);
    hasher.finish()
}
