//! Which groups a change affects.

use std::collections::BTreeSet;

use super::scope::FindingScope;
use crate::hierarchy::{GroupIndex, Hierarchy, Renumbering};

/// The groups that are checked.
#[derive(Clone, Copy)]
pub(in crate::validation) enum Selection<'s> {
    All,
    Affected(&'s Affected<'s>),
}

/// The groups whose findings a change to some groups affects.
pub(in crate::validation) struct Affected<'h> {
    hierarchy: &'h Hierarchy,
    /// Where groups stood before, unless all keep their places.
    renumbering: Option<Renumbering>,
    changed: BTreeSet<GroupIndex>,
    /// The changed groups and their ancestors, also those that they had before.
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
        Self { hierarchy, renumbering: None, changed, above, tops }
    }

    /// The same for groups of which some are new or stand elsewhere; `gone` are those that are not there
    /// any more. What stood below them stands below a changed group now.
    pub(in crate::validation) fn moved(
        changed: &[GroupIndex],
        gone: &[GroupIndex],
        before: &Hierarchy,
        hierarchy: &'h Hierarchy,
    ) -> Self {
        let renumbering = before.renumbering(hierarchy);
        let mut affected = Self::of(changed, hierarchy);
        let stood = changed.iter().filter_map(|it| renumbering.before(*it));
        let above_before = stood.chain(gone.iter().copied()).flat_map(|it| before.lineage(it));
        affected.above.extend(above_before.filter_map(|it| renumbering.after(it)));
        affected.renumbering = Some(renumbering);
        affected
    }

    /// Returns the place of a group that stood at a place before; `None` if it is gone.
    pub(super) fn place_of(&self, before: GroupIndex) -> Option<GroupIndex> {
        match &self.renumbering {
            Some(renumbering) => renumbering.after(before),
            None => Some(before),
        }
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
            Self::Affected(affected) if !affected.tops.contains(&hierarchy.root()) => {
                affected.tops.clone()
            }
            // The rule of the root group asks for nothing, so its children stand for themselves.
            Self::All | Self::Affected(_) => hierarchy.children(hierarchy.root()).collect(),
        }
    }
}
