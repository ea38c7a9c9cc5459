//! Where groups are written.

use std::collections::BTreeMap;
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
}

impl<'r> Places<'r> {
    /// Returns a group as written; the root group need not be.
    pub(super) fn of(&self, id: GroupId) -> Option<&'r GroupFile> {
        let place = self.origins.get(&id)?;
        let groups = find(self.readings, &place.file)?.groups();
        groups.iter().find(|it| it.id == Some(id) && it.place == *place)
    }
}

/// Returns the file of a path.
pub(super) fn find<'r>(
    readings: &'r [Arc<FileReading>],
    path: &str,
) -> Option<&'r Arc<FileReading>> {
    let at = readings.binary_search_by(|it| it.path.as_ref().cmp(path)).ok()?;
    readings.get(at)
}
