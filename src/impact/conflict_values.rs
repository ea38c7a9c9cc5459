//! The values of a conflict, to tell it from another and to show in what.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use crate::classification::{ConflictShare, ConflictingLeaves, Conflicts};
use crate::hierarchy::{GroupIndex, Hierarchy};

/// How many bytes the values of a conflict have with the groups that have them, about: each value has all groups, so those
/// of many groups in many values would be as long as both together.
const WRITTEN: usize = 16 << 10;

/// How long the name of a group is, about.
const NAME: usize = 40;

/// Lists the values that conflict: `ntp::servers: ["a"] (Base), ["b"] (Loud)`. For those of which there are too many to
/// write there is a digest.
pub(super) fn conflict_values(hierarchy: &Hierarchy, conflicts: &Conflicts<'_>) -> Vec<String> {
    let mut all = Vec::new();
    if !conflicts.environment.is_empty() {
        let shares = written(hierarchy, conflicts.environment.iter().cloned());
        all.push(format!("environment: {shares}"));
    }
    let mut writer = ValuesWriter { hierarchy, left: WRITTEN, digests: None };
    for (classes, kind) in [(&conflicts.classes, ""), (&conflicts.config_data, " (data)")] {
        for (class, keys) in classes {
            for (key, leaves) in keys {
                all.push(format!("{class}::{key}{kind}: {}", writer.values(leaves)));
            }
        }
    }
    for (name, leaves) in &conflicts.variables {
        all.push(format!("${name}: {}", writer.values(leaves)));
    }
    all
}

fn written<'c>(hierarchy: &Hierarchy, shares: impl Iterator<Item = ConflictShare<'c>>) -> String {
    let name = |group: GroupIndex| hierarchy.group(group).name.as_str();
    let mut shares: Vec<String> =
        shares.map(|it| format!("{} ({})", it.value, name(it.from))).collect();
    // In which order groups stand follows from the tree.
    shares.sort_unstable();
    shares.join(", ")
}

struct ValuesWriter<'h> {
    hierarchy: &'h Hierarchy,
    /// How many bytes there is room for.
    left: usize,
    /// The sums of the digests of leaves' names up to each leaf.
    digests: Option<Vec<u64>>,
}

impl ValuesWriter<'_> {
    fn values(&mut self, leaves: &ConflictingLeaves<'_>) -> String {
        let bytes = leaves.rows().fold(0usize, |bytes, (row, leaves)| {
            let each = row.value.to_string().len() + NAME;
            bytes.saturating_add(leaves.len().saturating_mul(each))
        });
        if let Some(left) = self.left.checked_sub(bytes) {
            self.left = left;
            return written(self.hierarchy, leaves.shares());
        }
        format!("values of {} groups with the digest {:016x}", leaves.count(), self.digest(leaves))
    }

    /// Sums the digests of the leaves, each times that of its value: so neither the order of leaves counts nor which of
    /// them have a value of one group, and no leaf is visited for each value.
    fn digest(&mut self, leaves: &ConflictingLeaves<'_>) -> u64 {
        let digests = self.digests.get_or_insert_with(|| {
            let names = leaves.all().iter().map(|it| digest(&self.hierarchy.group(*it).name));
            let sums = names.scan(0u64, |sum, name| {
                *sum = sum.wrapping_add(name);
                Some(*sum)
            });
            std::iter::once(0).chain(sums).collect()
        });
        let up_to = |leaf: usize| digests.get(leaf).copied().unwrap_or_default();
        leaves.rows().fold(0, |sum, (row, _)| {
            let names = up_to(row.leaves.end).wrapping_sub(up_to(row.leaves.start));
            sum.wrapping_add(names.wrapping_mul(digest(&row.value.to_string())))
        })
    }
}

fn digest(it: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    it.hash(&mut hasher);
    hasher.finish()
}
