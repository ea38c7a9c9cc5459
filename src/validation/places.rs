//! Where groups are written.

use std::collections::{BTreeMap, HashMap};

use super::file_list::FileList;
use super::group::GroupFile;
use crate::diagnostic::Place;
use crate::model::GroupId;

/// Where each group is written.
pub type Origins = BTreeMap<GroupId, Place>;

/// Finds where groups are written.
#[derive(Clone, Copy)]
pub(super) struct Places<'r> {
    pub(super) origins: &'r Origins,
    pub(super) readings: &'r FileList,
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
        let mut groups = self.readings.all_of(&place.file).flat_map(|it| it.groups());
        groups.find(|it| it.id() == Some(id) && it.is_at(place))
    }
}
