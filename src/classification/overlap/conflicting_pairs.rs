//! The pairs of groups that conflict on one node.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::subject::{PairKey, Subject};
use crate::classification::deciding::Deciding;
use crate::classification::{ConflictingLeaves, Conflicts, Explanation, keys_of_classes};
use crate::hierarchy::GroupIndex;
use crate::model::{ValueNumbers, memory_of};

/// How many bytes of a value are read in one step.
const BYTES_OF_STEP: usize = 256;

/// Finds pairs of groups that conflict, within limits: thousands of leaves can differ in as many values, so there can be as
/// many pairs as both squared.
#[derive(Debug)]
pub(super) struct ConflictingPairs {
    found: BTreeSet<PairKey>,
    /// How many pairs are found at the most.
    most: usize,
    /// The digests of how leaves were put together: those that are put together alike show the same pairs.
    walked: HashSet<u64>,
    /// How many steps are left: a step is a pair of groups that differ, or a part of a value that is read.
    left: usize,
}

/// There are no steps left, or as many pairs as are looked for are found.
struct SearchEnd;

impl ConflictingPairs {
    /// Finds the pairs that conflict on the node of an explanation, at most so many of them in at most so many steps.
    pub(super) fn of(
        explanation: &Explanation<'_>,
        conflicts: &Conflicts<'_>,
        most: usize,
        steps: usize,
    ) -> Self {
        let mut pairs = Self { found: BTreeSet::new(), walked: HashSet::new(), most, left: steps };
        // What was found before an end stands.
        let _ended = pairs.find(explanation, conflicts);
        pairs
    }

    /// Returns the pairs and how many steps are left.
    pub(super) fn into_parts(self) -> (BTreeSet<PairKey>, usize) {
        (self.found, self.left)
    }

    fn find(
        &mut self,
        explanation: &Explanation<'_>,
        conflicts: &Conflicts<'_>,
    ) -> Result<(), SearchEnd> {
        self.find_in_environments(explanation, conflicts)?;
        for classes in [&conflicts.classes, &conflicts.config_data] {
            for (_, _, leaves) in keys_of_classes(classes) {
                self.find_in_values(leaves)?;
            }
        }
        conflicts.variables.values().try_for_each(|leaves| self.find_in_values(leaves))
    }

    /// Finds leaves that decide the environment and have two.
    fn find_in_environments(
        &mut self,
        explanation: &Explanation<'_>,
        conflicts: &Conflicts<'_>,
    ) -> Result<(), SearchEnd> {
        let group = |leaf: GroupIndex| explanation.estate.hierarchy.group(leaf);
        let deciding = Deciding::among(explanation.leaves.iter().map(|leaf| group(*leaf)));
        let mut bearers: BTreeMap<&str, Vec<GroupIndex>> = BTreeMap::new();
        for share in conflicts.environment.iter().filter(|it| deciding.has(group(it.from))) {
            let environment = group(share.from).environment.as_str();
            bearers.entry(environment).or_default().push(share.from);
        }
        let bearers: Vec<Vec<GroupIndex>> = bearers.into_values().collect();
        self.note_each(&bearers, Subject::Environment)
    }

    /// Finds leaves that have two values of one name.
    fn find_in_values(&mut self, leaves: &ConflictingLeaves<'_>) -> Result<(), SearchEnd> {
        let mut bearers: Vec<Vec<GroupIndex>> = Vec::new();
        let mut numbers = ValueNumbers::default();
        // One large value may be in as many rows as there are leaves.
        let mut of_definer: BTreeMap<GroupIndex, usize> = BTreeMap::new();
        for (row, of_row) in leaves.rows() {
            let number = match of_definer.get(&row.defined_by) {
                Some(number) => *number,
                None => {
                    self.step(1 + memory_of(row.value) / BYTES_OF_STEP)?;
                    let number = numbers.number(row.value);
                    of_definer.insert(row.defined_by, number);
                    number
                }
            };
            bearers.resize_with(bearers.len().max(number + 1), Vec::new);
            if let Some(bearers) = bearers.get_mut(number) {
                bearers.extend(of_row);
            }
        }
        let mut hasher = DefaultHasher::new();
        bearers.hash(&mut hasher);
        self.step(leaves.count() / BYTES_OF_STEP)?;
        if !self.walked.insert(hasher.finish()) {
            return Ok(());
        }
        self.note_each(&bearers, Subject::Values)
    }

    /// Notes each pair of leaves that have different values; those that have one stand together.
    fn note_each(&mut self, bearers: &[Vec<GroupIndex>], of: Subject) -> Result<(), SearchEnd> {
        for (at, one) in bearers.iter().enumerate() {
            for other in bearers.iter().skip(at + 1) {
                for leaf in one {
                    for partner in other {
                        self.note(*leaf, *partner, of)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn note(
        &mut self,
        one: GroupIndex,
        other: GroupIndex,
        subject: Subject,
    ) -> Result<(), SearchEnd> {
        self.step(1)?;
        if self.found.len() >= self.most {
            return Err(SearchEnd);
        }
        self.found.insert((one.min(other), one.max(other), subject));
        Ok(())
    }

    fn step(&mut self, steps: usize) -> Result<(), SearchEnd> {
        self.left = self.left.checked_sub(steps).ok_or(SearchEnd)?;
        Ok(())
    }
}
