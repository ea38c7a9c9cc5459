//! The pairs of groups that conflict on one node.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::subject::{PairKey, Subject};
use crate::classification::deciding::Deciding;
use crate::classification::{ConflictingLeaves, Conflicts, Explanation, keys_of_classes};
use crate::hierarchy::GroupIndex;
use crate::model::same;

/// How many bytes of a value are compared in one step.
const BYTES_OF_STEP: usize = 64;

/// Finds pairs of groups that conflict, within limits: thousands of leaves can differ in as many values, so there can be as
/// many pairs as both squared.
#[derive(Debug)]
pub(super) struct ConflictingPairs {
    found: BTreeSet<PairKey>,
    /// How many pairs are found at the most.
    most: usize,
    /// How many steps are left: a step is a pair of groups that differ, or two values that are compared.
    left: usize,
}

/// There are no steps left, or as many pairs as are looked for are found.
struct SearchEnd;

/// Leaves that have one value: rows of them, as values are inherited.
#[derive(Debug)]
struct ValueBearers<'c> {
    value: &'c Value,
    /// How long its text is.
    length: usize,
    rows: Vec<&'c [GroupIndex]>,
}

impl ValueBearers<'_> {
    fn leaves(&self) -> impl Iterator<Item = GroupIndex> {
        self.rows.iter().copied().flatten().copied()
    }
}

impl ConflictingPairs {
    /// Finds the pairs that conflict on the node of an explanation, at most so many of them in at most so many steps.
    pub(super) fn of(
        explanation: &Explanation<'_>,
        conflicts: &Conflicts<'_>,
        most: usize,
        steps: usize,
    ) -> Self {
        let mut pairs = Self { found: BTreeSet::new(), most, left: steps };
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
        let mut sides: BTreeMap<&str, Vec<GroupIndex>> = BTreeMap::new();
        for share in conflicts.environment.iter().filter(|it| deciding.has(group(it.from))) {
            let environment = group(share.from).environment.as_str();
            sides.entry(environment).or_default().push(share.from);
        }
        let sides: Vec<Vec<GroupIndex>> = sides.into_values().collect();
        for (at, one) in sides.iter().enumerate() {
            for other in sides.iter().skip(at + 1) {
                for leaf in one {
                    for partner in other {
                        self.note(*leaf, *partner, Subject::Environment)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Finds leaves that have two values of one name.
    fn find_in_values(&mut self, leaves: &ConflictingLeaves<'_>) -> Result<(), SearchEnd> {
        let sides = self.sides(leaves)?;
        for (at, one) in sides.iter().enumerate() {
            for other in sides.iter().skip(at + 1) {
                self.step(1 + one.length.min(other.length) / BYTES_OF_STEP)?;
                if same(one.value, other.value) {
                    continue;
                }
                for leaf in one.leaves() {
                    for partner in other.leaves() {
                        self.note(leaf, partner, Subject::Values)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Puts together the leaves whose values have one text; two texts may still be the same value.
    fn sides<'c>(
        &mut self,
        leaves: &'c ConflictingLeaves<'_>,
    ) -> Result<Vec<ValueBearers<'c>>, SearchEnd> {
        let mut sides: Vec<ValueBearers<'c>> = Vec::new();
        let mut by_text: BTreeMap<String, usize> = BTreeMap::new();
        // One large value may be in as many rows as there are leaves.
        let mut by_definer: BTreeMap<GroupIndex, usize> = BTreeMap::new();
        for (row, of_row) in leaves.rows() {
            let known = by_definer.get(&row.defined_by).copied();
            let side = if let Some(side) = known {
                side
            } else {
                let text = row.value.to_string();
                let length = text.len();
                self.step(1 + length / BYTES_OF_STEP)?;
                let side = *by_text.entry(text).or_insert(sides.len());
                if side == sides.len() {
                    sides.push(ValueBearers { value: row.value, length, rows: Vec::new() });
                }
                by_definer.insert(row.defined_by, side);
                side
            };
            if let Some(side) = sides.get_mut(side) {
                side.rows.push(of_row);
            }
        }
        Ok(sides)
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
