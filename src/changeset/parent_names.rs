//! How groups name their parents.

use hashbrown::HashSet;

use crate::hierarchy::Hierarchy;
use crate::model::{Group, GroupId};

/// How groups name their parents in their files.
#[derive(Debug)]
pub struct ParentNames<'h> {
    hierarchy: &'h Hierarchy,
    /// Names of parents that several groups have.
    shared: HashSet<&'h str>,
}

impl<'h> ParentNames<'h> {
    /// Finds the names of the parents of some groups that are not unique, in one pass over all groups.
    pub fn of<'g>(hierarchy: &'h Hierarchy, groups: impl Iterator<Item = &'g Group>) -> Self {
        let parents = groups.filter_map(|it| hierarchy.find(it.parent));
        let names: HashSet<&str> =
            parents.map(|index| hierarchy.group(index).name.as_str()).collect();
        let (mut seen, mut shared) = (HashSet::new(), HashSet::new());
        for index in hierarchy.named(&names) {
            let name = hierarchy.group(index).name.as_str();
            if !seen.insert(name) {
                shared.insert(name);
            }
        }
        Self { hierarchy, shared }
    }

    /// Returns whether a text names the parent of one of the groups: its name, which no other group has as name or id.
    pub(super) fn is_name_of_parent(&self, group: &Group, text: &str) -> bool {
        let parent = self.hierarchy.find(group.parent).map(|index| self.hierarchy.group(index));
        // A name that reads as an id is looked for as ids are written.
        let id = text.parse::<GroupId>().ok();
        let is_id = id.is_some_and(|id| self.hierarchy.find(id).is_some());
        let name = id.map_or_else(|| text.to_owned(), |id| id.to_string());
        parent.is_some_and(|it| it.name.as_str() == name) && !self.shared.contains(&*name) && !is_id
    }

    /// Returns how one of the groups names its parent: by name, or by id if the name is not unique.
    pub(super) fn parent_of(&self, group: &Group) -> String {
        let parent = self.hierarchy.find(group.parent).map(|index| self.hierarchy.group(index));
        let Some(parent) = parent else { return group.parent.to_string() };
        let name = parent.name.as_str();
        // A name that reads like an id would be taken for one.
        let is_id = name.parse::<GroupId>().is_ok();
        if is_id || self.shared.contains(name) { parent.id.to_string() } else { name.to_owned() }
    }
}
