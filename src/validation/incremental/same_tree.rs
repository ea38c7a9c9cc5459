//! Files whose groups keep their names, environments and parents.

use std::sync::Arc;

use super::{ChangedTree, FileDifference};
use crate::hierarchy::Hierarchy;
use crate::model::Group;
use crate::validation::checked::Checked;
use crate::validation::group::GroupFile;
use crate::validation::places::Origins;

impl Checked {
    /// Returns the tree with what the groups of some files say now; `None` if they are not the same
    /// groups in the same places.
    pub(super) fn same_tree(
        &self,
        before: &Hierarchy,
        differences: &[FileDifference<'_>],
    ) -> Option<ChangedTree> {
        let mut groups: Vec<Group> = Vec::new();
        let mut moved: Vec<&GroupFile> = Vec::new();
        for difference in differences {
            let [old, new] = difference.groups()?;
            if old.len() != new.len() || !old.iter().zip(new).all(is_same) {
                return None;
            }
            for (old, new) in old.iter().zip(new) {
                groups.extend(new.group().cloned());
                if !old.is_at(&new.place()) {
                    moved.push(new);
                }
            }
        }
        let (hierarchy, changed) = before.amended(groups)?;
        let origins = moved_to(&self.origins, &moved);
        Some(ChangedTree { hierarchy, changed, gone: Vec::new(), origins, groups: self.groups })
    }
}

/// Returns whether two documents have the same group under the same parent.
fn is_same((old, new): (&GroupFile, &GroupFile)) -> bool {
    let identity = |it: &Group| (it.id, it.name.clone(), it.environment.clone());
    let (before, after) = (old.group(), new.group());
    before.is_some() && before.map(identity) == after.map(identity) && old.parent == new.parent
}

/// Returns where groups are written, some of them elsewhere than before.
fn moved_to(origins: &Arc<Origins>, moved: &[&GroupFile]) -> Arc<Origins> {
    let mut origins = Arc::clone(origins);
    for file in moved {
        if let Some(id) = file.id() {
            Arc::make_mut(&mut origins).insert(id, file.place());
        }
    }
    origins
}
