//! Checking again after a change to a few files.
//!
//! Most commits change a group or two. Then what was found of groups that the change does not reach stays as
//! it is. [`same_tree`] handles files whose groups keep their names, environments and parents; [`other_tree`]
//! handles groups that are new, gone, renamed or moved.

mod other_tree;
mod same_tree;

use std::sync::Arc;

use super::catalogue::Catalogues;
use super::checked::Checked;
use super::checks::{self, Affected, CatalogueNames, CheckContext};
use super::gather::{are_warnings, gather};
use super::group::GroupFile;
use super::incomplete::IncompleteGroups;
use super::layout::Strictness;
use super::own_schemas::{GroupSchemas, SchemaWork};
use super::places::{Origins, Places};
use super::reading::{FileParts, FileReading};
use super::search::Search;
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::Meter;

/// The tree of groups after a change.
struct ChangedTree {
    hierarchy: Hierarchy,
    /// The groups of the files that differ.
    changed: Vec<GroupIndex>,
    /// The groups that are gone, in the hierarchy before.
    gone: Vec<GroupIndex>,
    origins: Arc<Origins>,
    /// How many groups the files have.
    groups: usize,
}

/// A file that differs: as it was read before, and as it is read now.
struct FileDifference<'r> {
    old: Option<&'r FileReading>,
    new: Option<&'r FileReading>,
}

impl Checked {
    /// Checks again with other readings of some of the files, or readings of new ones, and without the files
    /// that are removed; the outcome is that of [`check`](super::check), or `None` if only that can tell.
    ///
    /// It cannot tell where there are errors, a file differs that is not one of groups, the root group comes, goes or has another rule, the policy searches for conflicts, a group that does not change names its
    /// parent by a name that other groups have now, a file can be taken for another, or more than 256 groups differ where some are new, gone,
    /// renamed or moved.
    pub fn incremental(
        &self,
        changed: &[Arc<FileReading>],
        removed: &[&str],
        meter: &Meter,
    ) -> Option<Self> {
        let before = self.estate.as_ref()?;
        let mut paths = changed.iter().map(|it| &*it.path).chain(removed.iter().copied());
        if self.search != Search::Decisive
            || self.layout.policy.potential_conflicts == Strictness::Error
            || paths.any(|it| self.needs_all_files(it))
        {
            return None;
        }
        let differences = self.differences(changed, removed);
        let ChangedTree { hierarchy, changed: places, gone, origins, groups } = self
            .same_tree(&before.hierarchy, &differences)
            .or_else(|| self.other_tree(&before.hierarchy, &differences))?;
        let readings = self.readings.with(changed, removed);
        let catalogues = self.catalogues(before);
        let context = CheckContext {
            hierarchy: &hierarchy,
            catalogues: &catalogues,
            names: CatalogueNames::default(),
            places: Places { origins: &origins, readings: &readings, all: None },
            incomplete: &IncompleteGroups::default(),
            policy: self.layout.policy,
            interpolation: self.layout.interpolation,
            search: self.search,
            automata: &self.automata,
            meter,
        };
        let schema_work = self.hold_to_schemas(&hierarchy, &places, &gone)?;
        let affected = if hierarchy.has_tree_of(&before.hierarchy) {
            Affected::of(&places, &hierarchy)
        } else {
            Affected::moved(&places, &gone, &before.hierarchy, &hierarchy)
        };
        let findings = checks::rerun(&context, &affected, &self.findings);
        let diagnostics = gather(&readings, &findings, &self.others);
        // What was only counted is found again from all files.
        (are_warnings(&diagnostics) && meter.dropped().is_none()).then(|| Self {
            estate: Some(Estate { hierarchy, ..before.clone() }),
            groups,
            diagnostics,
            origins,
            layout: self.layout.clone(),
            schemas: Arc::clone(&self.schemas),
            search: self.search,
            readings,
            types: Arc::clone(&self.types),
            findings,
            others: Arc::clone(&self.others),
            automata: Arc::clone(&self.automata),
            schema_work,
            counts: meter.counts(),
        })
    }

    /// Returns the catalogues, which stay as they are.
    fn catalogues(&self, estate: &Estate) -> Catalogues {
        Catalogues {
            files: Arc::clone(&estate.environments),
            classes: Arc::clone(&estate.catalogues),
            types: Arc::clone(&self.types),
            ..Catalogues::default()
        }
    }

    /// Returns whether a change to a file needs all files: a schema reads it, or its path does not tell it from
    /// others, since what of a name is not UTF-8 is shown as one character.
    fn needs_all_files(&self, path: &str) -> bool {
        let mut alike = self.readings.all_of(path);
        self.schemas.reads(path)
            || path.contains(char::REPLACEMENT_CHARACTER)
            || alike.nth(1).is_some()
    }

    /// Pairs the readings of the files that differ. A removed file that was not read does not count.
    fn differences<'r>(
        &'r self,
        changed: &'r [Arc<FileReading>],
        removed: &[&str],
    ) -> Vec<FileDifference<'r>> {
        let old = |path: &str| self.reading(path).map(AsRef::as_ref);
        let changed = changed.iter().map(|it| FileDifference { old: old(&it.path), new: Some(it) });
        let removed = removed.iter().map(|it| FileDifference { old: old(it), new: None });
        changed.chain(removed).filter(|it| it.old.is_some() || it.new.is_some()).collect()
    }

    /// Returns how often schemas look at the values of the commit; `None` if one does not allow one of the groups that differ, or
    /// they look too often: where the value stands is found out from all files.
    fn hold_to_schemas(
        &self,
        hierarchy: &Hierarchy,
        groups: &[GroupIndex],
        gone: &[GroupIndex],
    ) -> Option<u64> {
        if self.schemas.is_empty() {
            return Some(0);
        }
        // The groups that stay as they are cost what they did.
        let before = &self.estate.as_ref()?.hierarchy;
        let replaced = groups.iter().filter_map(|it| before.find(hierarchy.group(*it).id));
        let costs = replaced.chain(gone.iter().copied());
        let costs = costs.map(|it| self.schemas.cost_of_group(before.group(it)));
        let work = SchemaWork::after(costs.fold(self.schema_work, u64::saturating_sub));
        let mut all = groups.iter().map(|it| hierarchy.group(*it));
        all.all(|it| self.schemas.allow_group(it, GroupSchemas::All, &work)).then(|| work.done())
    }
}

impl<'r> FileDifference<'r> {
    /// Returns the groups before and now; `None` if one of the files is not one of groups, or the new one
    /// has errors.
    fn groups(&self) -> Option<[&'r [GroupFile]; 2]> {
        let is_valid = self.new.is_none_or(|it| are_warnings(&it.diagnostics));
        let [old, new] = [groups_of(self.old)?, groups_of(self.new)?];
        is_valid.then_some([old, new])
    }
}

fn groups_of(reading: Option<&FileReading>) -> Option<&[GroupFile]> {
    match reading.map(|it| &it.parts) {
        None => Some(&[]),
        Some(FileParts::Groups(groups)) => Some(groups),
        Some(_) => None,
    }
}
