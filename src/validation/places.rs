//! Where groups are written.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::group::GroupFile;
use super::reading::FileReading;
use crate::diagnostic::Place;
use crate::model::GroupId;

/// Where each group is written.
pub type Origins = BTreeMap<GroupId, Place>;

/// Finds where groups are written.
#[derive(Clone, Copy)]
pub(super) struct Places<'r> {
    pub(super) origins: &'r Origins,
    /// The files, by path.
    pub(super) readings: &'r [Arc<FileReading>],
    /// All groups, where that many are looked up; a change to a few files looks up few.
    pub(super) all: Option<&'r GroupFiles<'r>>,
}

/// Groups as written, by id; of several with one id the last, as in [`Origins`].
pub(super) type GroupFiles<'r> = HashMap<GroupId, &'r GroupFile>;

impl<'r> Places<'r> {
    /// Returns a group as written; the root group need not be.
    pub(super) fn of(&self, id: GroupId) -> Option<&'r GroupFile> {
        if let Some(all) = self.all {
            return all.get(&id).copied();
        }
        let place = self.origins.get(&id)?;
        let mut groups = files_of(self.readings, &place.file).flat_map(|it| it.groups());
        groups.find(|it| it.id() == Some(id) && it.is_at(place))
    }
}

/// Returns the file of a path.
pub(super) fn find<'r>(
    readings: &'r [Arc<FileReading>],
    path: &str,
) -> Option<&'r Arc<FileReading>> {
    readings.get(position(readings, path).ok()?)
}

/// Returns the files of a path: names that are not UTF-8 can be shown alike.
pub(super) fn files_of<'r>(
    readings: &'r [Arc<FileReading>],
    path: &str,
) -> impl Iterator<Item = &'r Arc<FileReading>> {
    let start = readings.partition_point(|it| it.path.as_ref() < path);
    readings.iter().skip(start).take_while(move |it| it.path.as_ref() == path)
}

/// Returns where the file of a path stands, or where it would.
pub(super) fn position(readings: &[Arc<FileReading>], path: &str) -> Result<usize, usize> {
    readings.binary_search_by(|it| it.path.as_ref().cmp(path))
}
