//! What is found of groups in their places among the others.

use rayon::prelude::*;

use super::catalogue::Catalogues;
use super::layout::Strictness;
use super::places::Places;
use super::shape::weight;
use super::{Search, environments, lint, parameter_type, referents};
use crate::diagnostic::{Diagnostic, Severity};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Meter, Room};
use crate::rule::Effort;

/// Something that was found.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) check: Check,
    /// The group in which it stands.
    pub(super) group: GroupIndex,
    pub(super) diagnostic: Diagnostic,
}

/// What found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// Classes and parameters that a catalogue lacks. They are found in the group that names them,
    /// and matter where no descendant sets a parameter otherwise.
    Referents,
    /// Values of another type. They are found in the group that sets them, and matter where no
    /// descendant sets another.
    Types,
    /// Rules that contradict those of ancestors.
    Contradictions,
    /// Environments that no file describes, found in the first group that names them.
    Environments,
}

/// What groups are checked against.
pub(super) struct Ground<'r> {
    pub(super) hierarchy: &'r Hierarchy,
    pub(super) catalogues: &'r Catalogues,
    pub(super) places: Places<'r>,
    pub(super) strictness: Strictness,
    pub(super) search: Search,
    pub(super) meter: &'r Meter,
}

impl Ground<'_> {
    /// Checks every group.
    pub(super) fn all(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for group in self.hierarchy.indexes() {
            self.referents(group, &mut findings);
            self.types(group, &mut findings);
        }
        self.environments(|_| true, &mut findings);
        // The rule of the root group asks for no text, so its children stand for themselves.
        let tops: Vec<GroupIndex> = self.hierarchy.children(self.hierarchy.root()).collect();
        let found = tops.into_par_iter().flat_map_iter(|top| self.contradictions(top));
        findings.par_extend(found);
        findings
    }

    /// Returns whether there is room for a finding; if not, it is counted.
    pub(super) fn keeps(&self, severity: Severity) -> bool {
        self.meter.finding(weight(severity)) == Room::Kept
    }

    /// Checks the classes that a group names.
    pub(super) fn referents(&self, group: GroupIndex, findings: &mut Vec<Finding>) {
        referents::check(self, group, &mut |it| findings.push(Check::Referents.of(group, it)));
    }

    /// Checks the values that a group sets.
    pub(super) fn types(&self, group: GroupIndex, findings: &mut Vec<Finding>) {
        let found = parameter_type::check(self, group);
        let found = found.into_iter().filter(|it| self.keeps(it.severity));
        findings.extend(found.map(|it| Check::Types.of(group, it)));
    }

    /// Checks the environments that some groups are the first to name.
    pub(super) fn environments(
        &self,
        wanted: impl Fn(GroupIndex) -> bool,
        findings: &mut Vec<Finding>,
    ) {
        for it in environments::unknown(self).iter().filter(|it| wanted(it.first)) {
            let found = environments::report(it, self).filter(|it| self.keeps(it.severity));
            findings.extend(found.map(|found| Check::Environments.of(it.first, found)));
        }
    }

    /// Checks the rules of a group and its descendants.
    pub(super) fn contradictions(&self, group: GroupIndex) -> impl Iterator<Item = Finding> {
        let effort = match self.search {
            Search::Decisive => Effort::Quick,
            Search::Everything | Search::WithoutConflicts => Effort::Thorough,
        };
        let found = lint::contradictions(self.hierarchy, group, &self.places, effort);
        let found = found.into_iter().filter(|(_, it)| self.keeps(it.severity));
        found.map(|(group, it)| Check::Contradictions.of(group, it))
    }
}

impl Check {
    fn of(self, group: GroupIndex, diagnostic: Diagnostic) -> Finding {
        Finding { check: self, group, diagnostic }
    }
}
