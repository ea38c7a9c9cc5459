//! Checking again after a change to a few files.
//!
//! Most commits change what a group or two set, and no name, environment or parent. Then the tree
//! stays as it is, and so does what was found of groups that the change does not reach.

use std::sync::Arc;

use super::catalogue::Catalogues;
use super::checked::Checked;
use super::checks::{self, Affected, CheckContext};
use super::gather::{are_warnings, gather};
use super::group::GroupFile;
use super::layout::Strictness;
use super::own_schemas::SchemaWork;
use super::places::{Origins, Places};
use super::reading::{FileParts, FileReading};
use super::search::Search;
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::{Group, GroupId, Meter};

impl Checked {
    /// Checks again with other readings of some of the files; the outcome is that of
    /// [`check`](super::check), or `None` if only that can tell.
    pub fn incremental(&self, changed: &[Arc<FileReading>], meter: &Meter) -> Option<Self> {
        let before = self.estate.as_ref()?;
        let policy = self.layout.policy;
        if self.search != Search::Decisive
            || policy.potential_conflicts == Strictness::Error
            || changed.iter().any(|it| self.schemas.reads(&it.path))
        {
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
            }
        }
        let origins = moved_to(&self.origins, &moved);
        let (hierarchy, places) = before.hierarchy.amended(groups)?;
        let catalogues = Catalogues {
            files: Arc::clone(&before.environments),
            classes: Arc::clone(&before.catalogues),
            types: Arc::clone(&self.types),
        };
        let context = CheckContext {
            hierarchy: &hierarchy,
            catalogues: &catalogues,
            places: Places { origins: &origins, readings: &readings },
            policy,
            interpolation: self.layout.interpolation,
            search: self.search,
            meter,
        };
        self.hold_to_schemas(&hierarchy, &places)?;
        let affected = Affected::of(&places, &hierarchy);
        let findings = checks::rerun(&context, &affected, &self.findings);
        let diagnostics = gather(&readings, &findings, &[]);
        // What was only counted is found again from all files.
        (are_warnings(&diagnostics) && meter.dropped().is_none()).then(|| Self {
            estate: Some(Estate { hierarchy, ..before.clone() }),
            groups: self.groups,
            diagnostics,
            origins,
            layout: self.layout.clone(),
            schemas: Arc::clone(&self.schemas),
            search: self.search,
            readings,
            types: Arc::clone(&self.types),
            findings,
            counts: meter.counts(),
        })
    }

    /// Returns `None` if a schema does not allow one of some groups: where the value stands is found out
    /// from all files.
    fn hold_to_schemas(&self, hierarchy: &Hierarchy, groups: &[GroupIndex]) -> Option<()> {
        let work = SchemaWork::default();
        let mut all = groups.iter().map(|it| hierarchy.group(*it));
        all.all(|it| self.schemas.allow_group(it, &work)).then_some(())
    }
}

/// Pairs the groups of two readings of a file; `None` if they are not the same groups, or the new
/// ones have errors.
fn pairs<'r>(
    old: &'r FileReading,
    new: &'r FileReading,
) -> Option<impl Iterator<Item = (&'r GroupFile, &'r GroupFile)> + use<'r>> {
    let (FileParts::Groups(before), FileParts::Groups(after)) = (&old.parts, &new.parts) else {
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
