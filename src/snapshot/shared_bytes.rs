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

/// About how many bytes the place of a group or a node in its file takes.
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
            + self.bytes_of_nodes(before)
            + PATCH
    }

    fn bytes_of_nodes(&self, before: &Self) -> u64 {
        let is_shared = Arc::ptr_eq(&self.node_origins, &before.node_origins);
        if is_shared { 0 } else { self.node_origins.len() as u64 * ORIGIN }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Budget, CommitId, Meter};
    use crate::validation::{
        Checked, FileKind, Search, SourceContent, SourceFile, read_file, validate,
    };

    /// How many groups there are, the root group counted: a parent, and its children.
    const GROUPS: u64 = 102;

    fn file(number: u64, text: &str) -> SourceFile {
        let content = SourceContent::Bytes(text.as_bytes().to_vec().into());
        SourceFile { path: format!("groups/{number}.yaml").into(), content }
    }

    fn text(number: u64) -> String {
        let (parent, fact) = if number > 0 { ("parent: g0\n", "a") } else { ("", "p") };
        let rule = format!("[\"=\", [fact, {fact}], \"{number}\"]");
        format!("name: g{number}\n{parent}rule: {rule}\nclasses: {{a{number}: {{}}}}\n")
    }

    fn snapshot(before: Option<&Snapshot>, checked: &Checked) -> Snapshot {
        let commit = CommitId::from_bytes([1; 20]);
        let estate = checked.estate.clone().unwrap();
        let (origins, found) = (Arc::clone(&checked.origins), checked.diagnostics.clone());
        let snapshot = match before {
            Some(before) => before.amended(commit, estate, origins, found),
            None => Snapshot::new(commit, estate, origins, found),
        };
        snapshot.mentioned();
        snapshot
    }

    /// Returns the estimate for a commit that writes a file in another way.
    fn bytes(number: u64, from: &str, to: &str) -> u64 {
        let files: Vec<SourceFile> =
            (0..GROUPS - 1).map(|number| file(number, &text(number))).collect();
        let checked = validate(&files, Search::Decisive);
        let before = snapshot(None, &checked);
        let other = text(number).replace(from, to);
        assert_ne!(other, text(number));
        let reading = read_file(&file(number, &other), FileKind::Groups).into();
        let checked = checked.incremental(&[reading], &[], &Meter::new(Budget::DEFAULT)).unwrap();
        snapshot(Some(&before), &checked).bytes_beside(&before, &checked.counts())
    }

    #[test]
    fn what_a_commit_shares_counts_little_and_what_is_its_own_in_full() {
        let described = bytes(7, "classes", "description: x\nclasses");
        assert_eq!(described, GROUPS * SHARED_GROUP + ANSWERS + PATCH);
        // All groups below inherit what the parent sets.
        let inherited = bytes(0, "a0: {}", "b0: {}");
        assert_eq!(inherited - described, (GROUPS - 2) * ANSWERS);
        let rule = bytes(7, "\"7\"", "other");
        assert_eq!(
            rule - described,
            3 * PATH,
            "the name, and facts of the parent and its children"
        );
        let mentioned = bytes(7, "[fact, a]", "[fact, b]");
        assert_eq!(mentioned - described, 2 * 4 * PATH, "of the index, and of what is stored");
        let found = bytes(7, "[fact, a]", "[fact, osfamily]");
        assert_eq!(found - mentioned, FINDING, "files count what is found in them by themselves");
        let moved = bytes(7, "name: g7", "# moved\nname: g7");
        assert_eq!(moved - described, GROUPS * ORIGIN);
        let renamed = bytes(7, "g7", "other");
        assert!(renamed > GROUPS * (OWN_GROUP + ORIGIN), "{renamed}");
    }
}
