//! Node groups as one tree: ancestors, descendants, inherited values.
//!
//! The groups stand in preorder, every parent before its children and every
//! subtree in one run; so an ancestor test is a comparison of two numbers.

mod alike;
mod amended;
mod build;
mod estate;
mod fault;
mod group_key;
mod inherit;
mod name_digest;
mod named;
mod published;
mod renumbering;
mod restructured;

use std::sync::Arc;

use hashbrown::HashMap;

use crate::model::{Condition, Group, GroupId, SharedList};
use name_digest::NameDigest;

pub use build::{check, root_group};
pub use estate::{Catalogue, Estate, has_parameter};
pub use fault::{HierarchyFault, RootFault};
pub use group_key::GroupKey;
pub(crate) use group_key::{changed_keys, rule_and_pins};
pub use inherit::{Inherited, InheritedClass, inherited_rule};
pub(crate) use published::inherited_classes_to_value;
pub use published::{View, classes_to_value, deleted_classes, group_to_value};
pub use renumbering::Renumbering;

/// The place of a group in its [`Hierarchy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupIndex(u32);

impl GroupIndex {
    /// Returns how many groups stand before it.
    pub fn number(self) -> usize {
        self.0 as usize
    }

    /// Returns the places from one to before another.
    pub(crate) fn between(from: Self, end: Self) -> impl Iterator<Item = Self> {
        (from.0..end.0).map(Self)
    }
}

/// All node groups of a commit, valid together.
///
/// The groups are shared with the hierarchies of other commits that have them too.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    /// In preorder; the root group is the first.
    groups: SharedList<Arc<Group>>,
    /// A digest of each name: to look for a name in the groups themselves would wait for memory twice for each.
    names: Arc<[NameDigest]>,
    shape: Arc<Lineage>,
}

/// Who is whose parent.
#[derive(Debug)]
struct Lineage {
    links: Box<[Link]>,
    by_id: HashMap<GroupId, GroupIndex>,
}

/// The place of a group among the others.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// The root group is its own parent.
    parent: GroupIndex,
    /// The first place behind the group's descendants.
    end: GroupIndex,
}

impl Hierarchy {
    /// Returns the place of the root group.
    pub fn root(&self) -> GroupIndex {
        GroupIndex(0)
    }

    /// Returns how many groups there are, the root group counted.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Returns whether there is no group; never, since there is a root group.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns the place before which so many groups stand, if there is one.
    pub fn at(&self, number: usize) -> Option<GroupIndex> {
        let index = GroupIndex(u32::try_from(number).ok()?);
        (number < self.groups.len()).then_some(index)
    }

    /// Returns every place, parents before their children.
    pub fn indexes(&self) -> impl DoubleEndedIterator<Item = GroupIndex> + use<> {
        (0..u32::try_from(self.groups.len()).unwrap_or(u32::MAX)).map(GroupIndex)
    }

    /// Returns every group, parents before their children.
    pub fn groups(&self) -> impl DoubleEndedIterator<Item = &Group> {
        self.groups.iter().map(AsRef::as_ref)
    }

    /// Returns whether rules read facts.
    pub fn reads_facts(&self) -> bool {
        self.groups().filter_map(|it| it.rule.as_deref()).any(Condition::reads_facts)
    }

    /// Returns the place of the group with this id.
    pub fn find(&self, id: GroupId) -> Option<GroupIndex> {
        self.shape.by_id.get(&id).copied()
    }

    /// Returns the group at a place.
    pub fn group(&self, index: GroupIndex) -> &Group {
        self.shared_group(index)
    }

    /// Returns the group at a place, to share it with another hierarchy.
    #[expect(clippy::indexing_slicing, reason = "an index is only made by its own hierarchy")]
    pub(crate) fn shared_group(&self, index: GroupIndex) -> &Arc<Group> {
        &self.groups[index.0 as usize]
    }

    /// Returns the parent of a group; the root group has none.
    pub fn parent(&self, index: GroupIndex) -> Option<GroupIndex> {
        (index != self.root()).then(|| self.link(index).parent)
    }

    /// Returns the group itself, its parent, and so on up to the root group.
    pub fn lineage(&self, index: GroupIndex) -> impl Iterator<Item = GroupIndex> {
        std::iter::successors(Some(index), |index| self.parent(*index))
    }

    /// Returns leaves and all that is above them, each once, in no order. The leaves are in the order of their places.
    pub fn lineages(&self, leaves: &[GroupIndex]) -> impl Iterator<Item = GroupIndex> {
        let before = std::iter::once(None).chain(leaves.iter().copied().map(Some));
        leaves.iter().zip(before).flat_map(move |(leaf, before)| {
            // Leaves stand in preorder: what one has in common with any before, it has with the last.
            let is_new =
                move |it: &GroupIndex| before.is_none_or(|leaf| !self.is_ancestor(*it, leaf));
            self.lineage(*leaf).take_while(is_new)
        })
    }

    /// Returns the children of a group, in order.
    pub fn children(&self, index: GroupIndex) -> impl Iterator<Item = GroupIndex> {
        let end = self.end(index);
        let mut next = GroupIndex(index.0 + 1);
        std::iter::from_fn(move || {
            let child = (next < end).then_some(next)?;
            next = self.end(child);
            Some(child)
        })
    }

    /// Returns the first place behind the descendants of a group.
    pub fn end(&self, index: GroupIndex) -> GroupIndex {
        self.link(index).end
    }

    /// Returns the group itself and its descendants, parents before their children.
    pub fn subtree(&self, index: GroupIndex) -> impl Iterator<Item = GroupIndex> + use<> {
        (index.0..self.end(index).0).map(GroupIndex)
    }

    /// Returns whether one group is an ancestor of the other, which are not the same.
    pub fn is_ancestor(&self, ancestor: GroupIndex, descendant: GroupIndex) -> bool {
        ancestor < descendant && descendant < self.end(ancestor)
    }

    /// Returns those of the groups that have no descendant among them.
    ///
    /// The groups must be in the order of their places.
    pub fn leaves(&self, groups: &[GroupIndex]) -> Vec<GroupIndex> {
        let next = groups.iter().skip(1).map(Some).chain([None]);
        let is_leaf = |(group, next): &(&GroupIndex, Option<&GroupIndex>)| {
            next.is_none_or(|next| !self.is_ancestor(**group, *next))
        };
        groups.iter().zip(next).filter(is_leaf).map(|(group, _)| *group).collect()
    }

    #[expect(clippy::indexing_slicing, reason = "an index is only made by its own hierarchy")]
    fn link(&self, index: GroupIndex) -> &Link {
        &self.shape.links[index.0 as usize]
    }
}

#[cfg(test)]
mod tests;
