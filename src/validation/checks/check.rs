//! What a check is, and what it finds.

use std::sync::Arc;

use super::super::file_reader::weight;
use super::affected::Selection;
use super::context::CheckContext;
use super::scope::FindingScope;
use crate::diagnostic::{Diagnostic, Kind, Severity};
use crate::hierarchy::GroupIndex;
use crate::model::{Meter, Room};

/// A check of groups among each other.
pub(in crate::validation) struct Check {
    /// The kinds of its findings, which have a severity and a page each.
    pub(in crate::validation) kinds: &'static [Kind],
    /// What a finding depends on.
    pub(in crate::validation) scope: FindingScope,
    pub(in crate::validation) run: Run,
}

/// How a check goes through the tree.
#[derive(Clone, Copy)]
pub(in crate::validation) enum Run {
    /// Once for all groups. A finding in a group that need not be checked is dropped.
    Once(fn(&CheckContext<'_>, &mut Findings<'_>)),
    /// Group by group.
    EachGroup(fn(&CheckContext<'_>, GroupIndex, &mut Findings<'_>)),
    /// Once for each of several subtrees, at the same time.
    EachSubtree(fn(&CheckContext<'_>, GroupIndex, &mut Findings<'_>)),
}

/// A diagnostic, and the group in which it stands.
#[derive(Clone, Debug)]
pub(in crate::validation) struct Finding {
    pub(in crate::validation) scope: FindingScope,
    pub(in crate::validation) group: GroupIndex,
    /// Commits that leave the group as it is share it.
    pub(in crate::validation) diagnostic: Arc<Diagnostic>,
}

/// Collects what a check finds.
pub(in crate::validation) struct Findings<'c> {
    check: &'c Check,
    selection: Selection<'c>,
    meter: &'c Meter,
    found: Vec<Finding>,
}

impl<'c> Findings<'c> {
    pub(super) fn new(check: &'c Check, selection: Selection<'c>, meter: &'c Meter) -> Self {
        Self { check, selection, meter, found: Vec::new() }
    }

    /// Adds a finding in a group; one for which there is no room is only counted.
    pub(super) fn add(&mut self, group: GroupIndex, diagnostic: Diagnostic) {
        self.add_with(group, diagnostic.severity, || Some(diagnostic));
    }

    /// Adds a finding whose text is only made if there is room for it.
    pub(super) fn add_with(
        &mut self,
        group: GroupIndex,
        severity: Severity,
        diagnostic: impl FnOnce() -> Option<Diagnostic>,
    ) {
        let scope = self.check.scope;
        if self.selection.has(scope, group)
            && self.meter.finding(weight(severity)) == Room::Kept
            && let Some(diagnostic) = diagnostic()
        {
            debug_assert!(self.check.kinds.contains(&diagnostic.kind), "{}", diagnostic.kind);
            self.found.push(Finding { scope, group, diagnostic: Arc::new(diagnostic) });
        }
    }

    pub(super) fn into_vec(self) -> Vec<Finding> {
        self.found
    }
}
