//! Checking again after a change to a few files.
//!
//! Most commits change what a group or two say: nobody's name, environment or parent. Then the tree
//! stays as it is, and so does what was found of groups that the change does not reach.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::catalogue::Catalogues;
use super::checked::{Checked, Origins, are_warnings, gather};
use super::findings::{Check, Ground};
use super::places::Places;
use super::{FileReading, GroupFile, Parts, Search, Strictness, tree};
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::{Group, GroupId, Meter};

impl Checked {
    /// Checks again with other readings of some of the files; the outcome is that of
    /// [`check`](super::check), or `None` if only that can tell.
    pub fn again(&self, changed: &[Arc<FileReading>], meter: &Meter) -> Option<Self> {
        let before = self.estate.as_ref()?;
        let policy = self.layout.policy;
        if self.search != Search::Decisive || policy.potential_conflicts == Strictness::Error {
            return None;
        }
        let mut readings = self.readings.clone();
        let mut groups: Vec<Group> = Vec::new();
        let mut moved: Vec<&GroupFile> = Vec::new();
        for reading in changed {
            let at = self.readings.binary_search_by(|it| it.path.cmp(&reading.path)).ok()?;
            let old = self.readings.get(at)?;
            *readings.get_mut(at)? = Arc::clone(reading);
            for (old, new) in pairs(old, reading)? {
                groups.extend(new.group.clone());
                if old.place != new.place {
                    moved.push(new);
                }
                let mut demands = Vec::new();
                tree::demand(new, policy, &mut demands);
                if !demands.is_empty() {
                    return None;
                }
            }
        }
        let origins = moved_to(&self.origins, &moved);
        let (hierarchy, places) = before.hierarchy.amended(groups)?;
        let catalogues = Catalogues {
            files: Arc::clone(&before.environments),
            classes: Arc::clone(&before.catalogues),
            types: Arc::clone(&self.types),
        };
        let reach = Affected::of(&places, &hierarchy);
        let mut findings = self.findings.clone();
        findings.retain(|it| !reach.has(it.check, it.group));
        let ground = Ground {
            hierarchy: &hierarchy,
            catalogues: &catalogues,
            places: Places { origins: &origins, readings: &readings },
            strictness: policy.missing_referents,
            search: self.search,
            meter,
        };
        for group in &reach.above {
            ground.referents(*group, &mut findings);
            ground.types(*group, &mut findings);
        }
        ground.environments(|it| reach.changed.contains(&it), &mut findings);
        for group in &reach.tops {
            findings.extend(ground.contradictions(*group));
        }
        let diagnostics = gather(&readings, &findings, Vec::new());
        // What was only counted is found again from all files.
        (are_warnings(&diagnostics) && meter.dropped().is_none()).then(|| Self {
            estate: Some(Estate { hierarchy, ..before.clone() }),
            groups: self.groups,
            diagnostics,
            origins,
            layout: self.layout.clone(),
            search: self.search,
            readings,
            types: Arc::clone(&self.types),
            findings,
            counts: meter.counts(),
        })
    }
}

/// Pairs the groups of two readings of a file; `None` if they are not the same groups, or the new
/// ones have errors.
fn pairs<'r>(
    old: &'r FileReading,
    new: &'r FileReading,
) -> Option<impl Iterator<Item = (&'r GroupFile, &'r GroupFile)> + use<'r>> {
    let (Parts::Groups(before), Parts::Groups(after)) = (&old.parts, &new.parts) else {
        return None;
    };
    let is_same = |(old, new): (&GroupFile, &GroupFile)| {
        let parent = |it: &GroupFile| it.parent.as_ref().map(|(name, _)| name.clone());
        let identity = |it: &Group| (it.id, it.name.clone(), it.environment.clone());
        let (before, after) = (old.group.as_ref(), new.group.as_ref());
        before.is_some_and(|it| it.id != GroupId::ROOT)
            && before.map(identity) == after.map(identity)
            && parent(old) == parent(new)
    };
    let same = before.len() == after.len() && before.iter().zip(after).all(is_same);
    (same && are_warnings(&new.diagnostics)).then(|| before.iter().zip(after))
}

/// Returns where groups are written, some of them elsewhere than before.
fn moved_to(origins: &Arc<Origins>, moved: &[&GroupFile]) -> Arc<Origins> {
    let mut origins = Arc::clone(origins);
    for file in moved {
        if let Some(id) = file.id {
            Arc::make_mut(&mut origins).insert(id, file.place.clone());
        }
    }
    origins
}

/// The groups of which something else may be found.
struct Affected<'h> {
    hierarchy: &'h Hierarchy,
    changed: BTreeSet<GroupIndex>,
    /// The changed groups and their ancestors, whose values they may hide.
    above: BTreeSet<GroupIndex>,
    /// The changed groups that have no changed ancestor.
    tops: Vec<GroupIndex>,
}

impl<'h> Affected<'h> {
    fn of(changed: &[GroupIndex], hierarchy: &'h Hierarchy) -> Self {
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

    /// Returns whether a check must look at a group anew.
    fn has(&self, check: Check, group: GroupIndex) -> bool {
        match check {
            Check::Referents | Check::Types => self.above.contains(&group),
            Check::Environments => self.changed.contains(&group),
            Check::Contradictions => {
                let is_below = |top: &GroupIndex| self.hierarchy.is_ancestor(*top, group);
                self.tops.iter().any(|top| *top == group || is_below(top))
            }
        }
    }
}
