//! Hierarchies that differ in what some groups say, not in who is whose parent.

use std::sync::Arc;

use super::{GroupIndex, Hierarchy};
use crate::model::Group;

impl Hierarchy {
    /// Returns the hierarchy with other groups in the places of those with their ids, and these
    /// places; `None` if the tree or its order would not be the same, or the root group has another rule.
    ///
    /// A group's reference to its parent is not read: the parent stays the same.
    pub(crate) fn amended(
        &self,
        groups: impl IntoIterator<Item = Group>,
    ) -> Option<(Self, Vec<GroupIndex>)> {
        let (mut others, mut places) = (Vec::new(), Vec::new());
        for group in groups {
            let index = self.find(group.id)?;
            let before = self.group(index);
            let stays = (&before.name, &before.environment) == (&group.name, &group.environment)
                // That of the root group is a fault of the tree unless all nodes match it.
                && (index != self.root() || before.rule == group.rule);
            if !stays {
                return None;
            }
            others.push((index.number(), Arc::new(Group { parent: before.parent, ..group })));
            places.push(index);
        }
        let (names, shape) = (Arc::clone(&self.names), Arc::clone(&self.shape));
        Some((Self { groups: self.groups.with(others), names, shape }, places))
    }
}
