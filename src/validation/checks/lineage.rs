//! How far up the tree a group is compared.

use crate::hierarchy::{GroupIndex, Hierarchy};

/// How many ancestors, the nearest first, a group is compared with: no estate is as deep, and a chain of
/// all groups of a commit must not take the square of their number.
const ANCESTORS: usize = 64;

/// Returns the ancestors of a group that it is compared with, the nearest first.
pub(super) fn ancestors(
    hierarchy: &Hierarchy,
    index: GroupIndex,
) -> impl Iterator<Item = GroupIndex> {
    hierarchy.lineage(index).skip(1).take(ANCESTORS)
}

/// Returns whether a group has more ancestors than it is compared with.
pub(super) fn is_too_deep(hierarchy: &Hierarchy, index: GroupIndex) -> bool {
    hierarchy.lineage(index).nth(ANCESTORS + 1).is_some()
}
