//! The values of a conflict, to tell it from another and to show in what.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};

use crate::classification::{ConflictShare, ConflictingLeaves, Conflicts, keys_of_classes};
use crate::hierarchy::{GroupIndex, Hierarchy};

/// How many bytes of values are written for one node, about, with the groups that have them: each value has all groups, so
/// those of many groups in many values would be as long as both together.
const WRITTEN: usize = 64 << 10;

/// How long the name of a group is, about.
const NAME: usize = 40;

/// What leaves have in which they differ. Two are equal if the same groups have the same values.
#[derive(Clone, Debug)]
pub(super) struct ConflictingValue {
    key: String,
    digest: u64,
    /// `["a"] (Base), ["b"] (Loud)`, or how many groups differ where there is no room for that.
    text: String,
}

impl ConflictingValue {
    /// Returns what tells it from another.
    pub(super) fn identity(&self) -> (&str, u64) {
        (&self.key, self.digest)
    }
}

impl PartialEq for ConflictingValue {
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for ConflictingValue {}

impl std::fmt::Display for ConflictingValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.key, self.text)
    }
}

/// Lists the values that conflict.
pub(super) fn conflicting_values(
    hierarchy: &Hierarchy,
    conflicts: &Conflicts<'_>,
) -> Vec<ConflictingValue> {
    let mut writer = ValuesWriter { hierarchy, left: WRITTEN, sums: None };
    let mut all = Vec::new();
    if !conflicts.environment.is_empty() {
        let text = written(hierarchy, conflicts.environment.iter().cloned());
        let key = "environment".to_owned();
        all.push(ConflictingValue { key, digest: digest(&text), text });
    }
    for (classes, kind) in [(&conflicts.classes, ""), (&conflicts.config_data, " (data)")] {
        for (class, key, leaves) in keys_of_classes(classes) {
            all.push(writer.value(format!("{class}::{key}{kind}"), leaves));
        }
    }
    for (name, leaves) in &conflicts.variables {
        all.push(writer.value(format!("${name}"), leaves));
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
    sums: Option<Vec<u64>>,
}

impl ValuesWriter<'_> {
    /// The digest is the sum of those of the leaves, each times that of its value: so neither the order of leaves counts nor
    /// which of them have a value of one group, and no leaf is visited for each value.
    fn value(&mut self, key: String, leaves: &ConflictingLeaves<'_>) -> ConflictingValue {
        let hierarchy = self.hierarchy;
        let sums = self.sums.get_or_insert_with(|| sums(hierarchy, leaves.all()));
        let up_to = |leaf: usize| sums.get(leaf).copied().unwrap_or_default();
        // One large value may be in as many rows as there are leaves.
        let mut known: BTreeMap<GroupIndex, (usize, u64)> = BTreeMap::new();
        let (mut bytes, mut sum) = (0usize, 0u64);
        for (row, of_row) in leaves.rows() {
            let (length, value) = *known.entry(row.defined_by).or_insert_with(|| {
                let text = row.value.to_string();
                (text.len(), digest(&text))
            });
            bytes = bytes.saturating_add(of_row.len().saturating_mul(length + NAME));
            let names = up_to(row.leaves.end).wrapping_sub(up_to(row.leaves.start));
            sum = sum.wrapping_add(names.wrapping_mul(value));
        }
        let text = match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                written(hierarchy, leaves.shares())
            }
            None => format!("values of {} groups", leaves.count()),
        };
        ConflictingValue { key, digest: sum, text }
    }
}

fn sums(hierarchy: &Hierarchy, leaves: &[GroupIndex]) -> Vec<u64> {
    let names = leaves.iter().map(|it| digest(&hierarchy.group(*it).name));
    let sums = names.scan(0u64, |sum, name| {
        *sum = sum.wrapping_add(name);
        Some(*sum)
    });
    std::iter::once(0).chain(sums).collect()
}

/// An odd number, so that products of digests keep what they are made of.
fn digest(it: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    it.hash(&mut hasher);
    hasher.finish() | 1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::classification::conflicts;
    use crate::hierarchy::{Estate, root_group};
    use crate::model::{Group, GroupId, Interpolation};

    fn values(groups: &[(u8, u8, serde_json::Value)]) -> Vec<ConflictingValue> {
        let id = |number: u8| match number {
            0 => GroupId::ROOT,
            number => format!("00000000-0000-4000-8000-0000000000{number:02}").parse().unwrap(),
        };
        let group = |(number, parent, sets): &(u8, u8, serde_json::Value)| Group {
            id: id(*number),
            parent: id(*parent),
            name: format!("g{number}").parse().unwrap(),
            variables: serde_json::from_value(sets.clone()).unwrap(),
            ..root_group().unwrap()
        };
        let groups = std::iter::once(root_group().unwrap()).chain(groups.iter().map(group));
        let estate = Estate {
            hierarchy: Hierarchy::build(groups.collect()).unwrap(),
            individuals: std::sync::Arc::default(),
            environments: std::sync::Arc::default(),
            catalogues: std::sync::Arc::default(),
            interpolation: Interpolation::Off,
        };
        let all: Vec<GroupIndex> = estate.hierarchy.indexes().collect();
        conflicting_values(&estate.hierarchy, &conflicts(&estate, &all))
    }

    #[test]
    fn a_value_is_the_same_whichever_group_above_sets_it_and_whatever_others_are() {
        let inherited = values(&[
            (1, 0, json!({"v": "a", "w": "c"})),
            (2, 1, json!({})),
            (3, 1, json!({"v": "b"})),
            (4, 1, json!({"w": "d"})),
        ]);
        let own = values(&[
            (2, 0, json!({"v": "a", "w": "c".repeat(100_000)})),
            (3, 0, json!({"v": "b", "w": "c"})),
            (4, 0, json!({"v": "a", "w": "d"})),
        ]);
        let [v, w] = inherited.as_slice() else { panic!("{inherited:?}") };
        assert_eq!(v.to_string(), r#"$v: "a" (g2), "a" (g4), "b" (g3)"#);
        assert_eq!(w.to_string(), r#"$w: "c" (g2), "c" (g3), "d" (g4)"#);
        assert_eq!(own[0], *v);
        assert_ne!(own[1], *w);
        assert_eq!(own[1].to_string(), "$w: values of 3 groups");
    }
}
