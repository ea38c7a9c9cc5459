//! Which groups a change affects.

use std::collections::BTreeSet;

use super::scope::FindingScope;
use crate::hierarchy::{GroupIndex, Hierarchy};

/// The groups that are checked.
#[derive(Clone, Copy)]
pub(in crate::validation) enum Selection<'s> {
    All,
    Affected(&'s Affected<'s>),
}

/// The groups whose findings a change to some groups affects.
pub(in crate::validation) struct Affected<'h> {
    hierarchy: &'h Hierarchy,
    changed: BTreeSet<GroupIndex>,
    /// The changed groups and their ancestors.
    above: BTreeSet<GroupIndex>,
    /// The changed groups that have no changed ancestor.
    tops: Vec<GroupIndex>,
}

impl<'h> Affected<'h> {
    pub(in crate::validation) fn of(changed: &[GroupIndex], hierarchy: &'h Hierarchy) -> Self {
        let changed: BTreeSet<GroupIndex> = changed.iter().copied().collect();
        let above = changed.iter().flat_map(|it| hierarchy.lineage(*it)).collect();
        let mut tops: Vec<GroupIndex> = Vec::new();
        for group in &changed {
            if tops.last().is_none_or(|top| !hierarchy.is_ancestor(*top, *group)) {
                tops.push(*group);
            }
        }
        Self { hierarchy, changed, above, tops }
    }

    /// Returns whether the change affects findings of a scope in a group.
    pub(super) fn has(&self, scope: FindingScope, group: GroupIndex) -> bool {
        match scope {
            FindingScope::Group => self.changed.contains(&group),
            FindingScope::Descendants => self.above.contains(&group),
            FindingScope::Ancestors => {
                let is_below = |top: &GroupIndex| self.hierarchy.is_ancestor(*top, group);
                self.tops.iter().any(|top| *top == group || is_below(top))
            }
            FindingScope::Estate => true,
        }
    }
}

impl Selection<'_> {
    /// Returns whether a group is checked for findings of a scope.
    pub(super) fn has(self, scope: FindingScope, group: GroupIndex) -> bool {
        match self {
            Self::All => true,
            Self::Affected(affected) => affected.has(scope, group),
        }
    }

    /// Returns the groups that are checked for findings of a scope.
    pub(super) fn groups(self, scope: FindingScope, hierarchy: &Hierarchy) -> Vec<GroupIndex> {
        match (self, scope) {
            (Self::All, _) | (Self::Affected(_), FindingScope::Estate) => {
                hierarchy.indexes().collect()
            }
            (Self::Affected(it), FindingScope::Group) => it.changed.iter().copied().collect(),
            (Self::Affected(it), FindingScope::Descendants) => it.above.iter().copied().collect(),
            (Self::Affected(it), FindingScope::Ancestors) => {
                it.tops.iter().flat_map(|top| hierarchy.subtree(*top)).collect()
            }
        }
    }

    /// Returns the tops of the subtrees that are checked.
    pub(super) fn tops(self, hierarchy: &Hierarchy) -> Vec<GroupIndex> {
        match self {
            // The rule of the root group asks for nothing, so its children stand for themselves.
            Self::All => hierarchy.children(hierarchy.root()).collect(),
            Self::Affected(affected) => affected.tops.clone(),
        }
    }
}
