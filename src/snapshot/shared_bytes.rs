//! What a snapshot takes beside the one that it was made of.

use std::collections::HashSet;
use std::sync::Arc;

use super::Snapshot;
use crate::diagnostic::Diagnostic;
use crate::hierarchy::GroupIndex;
use crate::model::{BudgetItem, Counts};

/// About how many bytes a group takes that is shared.
const SHARED_GROUP: u64 = 4;

/// About how many bytes a group takes in an index or a tree of its own, and a comparison of its rule.
const OWN_GROUP: u64 = 1_500;
const OWN_COMPARISON: u64 = 200;

/// About how many bytes the prepared answers of a group take.
const ANSWERS: u64 = 600;

/// About how many bytes the place of a group in its file takes.
const ORIGIN: u64 = 100;

/// About how many bytes the code of those rules takes that stand beside the index.
const PATCH: u64 = 64 << 10;

/// About how many bytes a path takes that rules or values mention.
const PATH: u64 = 400;

/// About how many bytes a finding takes, and one that is shared.
const FINDING: u64 = 1_000;
const SHARED_FINDING: u64 = 64;

impl Snapshot {
    /// Estimates how many bytes this takes beside another snapshot that it was made of. The counts are those of its
    /// commit.
    pub(crate) fn bytes_beside(&self, before: &Self, counts: &Counts) -> u64 {
        self.bytes_of_groups(before, counts)
            + self.bytes_of_paths(before)
            + self.bytes_of_findings(before, counts)
            + PATCH
    }

    fn bytes_of_groups(&self, before: &Self, counts: &Counts) -> u64 {
        let hierarchy = &self.estate.hierarchy;
        let groups = hierarchy.len() as u64;
        let changed = before.estate.hierarchy.changed_in(hierarchy);
        let Some(changed) = changed.filter(|_| self.index.shares_base_of(&before.index)) else {
            return groups * (OWN_GROUP + ORIGIN)
                + counts.get(BudgetItem::RuleTerms) * OWN_COMPARISON
                + counts.get(BudgetItem::DocumentBytes);
        };
        // They have what they inherit in them.
        let below = |it: &GroupIndex| (hierarchy.end(*it).number() - it.number()) as u64;
        let below: u64 = changed.iter().map(below).sum();
        let has_own_origins = !Arc::ptr_eq(&self.origins, &before.origins);
        let of_a_group = if has_own_origins { SHARED_GROUP + ORIGIN } else { SHARED_GROUP };
        groups * of_a_group + below.min(groups) * ANSWERS
    }

    fn bytes_of_paths(&self, before: &Self) -> u64 {
        let of_rules = self.index.paths().len();
        let of_values = self.value_facts.paths().len();
        let of_index = if self.index.shares_paths_of(&before.index) { 0 } else { of_rules };
        let in_values =
            if self.value_facts.shares_paths_of(&before.value_facts) { 0 } else { of_values };
        // Where they are not known yet, they will be.
        let shares = self.mentioned.get().zip(before.mentioned.get());
        let is_shared = shares.is_some_and(|(one, other)| Arc::ptr_eq(one, other));
        let mentioned = if is_shared { 0 } else { of_rules + of_values };
        (of_index + in_values + mentioned) as u64 * PATH
    }

    fn bytes_of_findings(&self, before: &Self, counts: &Counts) -> u64 {
        let known: HashSet<*const Diagnostic> = before.warnings.iter().map(Arc::as_ptr).collect();
        let is_new = |it: &&Arc<Diagnostic>| !known.contains(&Arc::as_ptr(it));
        let new = self.warnings.iter().filter(is_new).count() as u64;
        new * FINDING + counts.get(BudgetItem::Findings) * SHARED_FINDING
    }
}
