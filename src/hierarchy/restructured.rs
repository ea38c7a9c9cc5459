//! Hierarchies that have other groups than one before, or the same ones elsewhere.
//!
//! Only the groups that differ are compared with their siblings; all others keep their order.

use std::iter::Peekable;
use std::slice::Iter;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::build::order;
use super::{GroupIndex, Hierarchy, Lineage, Link};
use crate::model::{Group, GroupId};

/// A group that is placed under its parent.
#[derive(Clone)]
struct PlacedGroup {
    group: Arc<Group>,
    /// Where it stands in the hierarchy before, which has its children there.
    before: Option<GroupIndex>,
}

/// The groups that differ from those of the hierarchy before.
struct LiftedGroups {
    /// The groups that do not stand where they stood, by number.
    lifted: Vec<bool>,
    /// The groups that are put elsewhere, by parent and in order.
    placed: HashMap<GroupId, Vec<PlacedGroup>>,
}

impl Hierarchy {
    /// Returns the hierarchy without some groups and with others in addition, or in place of those with
    /// their ids; `None` if one of them is the root group, or if they do not make a tree.
    ///
    /// Each group names its parent. The caller makes sure that no name stands twice in an environment.
    pub(crate) fn restructured(&self, gone: &[GroupId], groups: Vec<Group>) -> Option<Self> {
        let LiftedGroups { lifted, placed } = self.differing(gone, groups)?;
        let is_lifted = |it: GroupIndex| lifted.get(it.number()).copied().unwrap_or_default();
        let placed_under = |id: GroupId| placed.get(&id).map_or(&[][..], Vec::as_slice);
        let root = self.root();
        let count = self.len() + placed.values().map(Vec::len).sum::<usize>()
            - lifted.iter().filter(|it| **it).count();
        let mut links: Vec<Link> = Vec::with_capacity(count);
        let mut ordered: Vec<Arc<Group>> = Vec::with_capacity(count);
        let mut by_id = HashMap::with_capacity(count);
        let top = PlacedGroup { group: Arc::clone(self.groups.first()?), before: Some(root) };
        let mut open: Vec<(GroupIndex, Children<'_>)> = Vec::new();
        let mut next = Some((root, top));
        loop {
            if let Some((parent, PlacedGroup { group, before })) = next.take() {
                let index = GroupIndex(u32::try_from(ordered.len()).ok()?);
                links.push(Link { parent, end: index });
                if by_id.insert(group.id, index).is_some() {
                    return None;
                }
                let children = Children::of(self, before, placed_under(group.id).iter().peekable());
                ordered.push(group);
                open.push((index, children));
            }
            let Some((index, children)) = open.last_mut() else { break };
            next = children.next(self, &is_lifted).map(|it| (*index, it));
            if next.is_none() {
                let end = GroupIndex(u32::try_from(ordered.len()).ok()?);
                links.get_mut(index.number())?.end = end;
                open.pop();
            }
        }
        // A group whose parent is gone, or is below it, is never reached.
        let shape = Lineage { links: links.into(), by_id };
        (ordered.len() == count).then(|| Self { groups: ordered.into(), shape: Arc::new(shape) })
    }

    /// Sorts out the groups that differ.
    fn differing(&self, gone: &[GroupId], groups: Vec<Group>) -> Option<LiftedGroups> {
        let mut lifted = vec![false; self.len()];
        for id in gone {
            *lifted.get_mut(self.find(*id)?.number())? = true;
        }
        let mut placed: HashMap<GroupId, Vec<PlacedGroup>> = HashMap::new();
        let mut seen = HashSet::new();
        for group in groups {
            let before = self.find(group.id);
            let is_root = group.id == GroupId::ROOT;
            if is_root || !seen.insert(group.id) {
                return None;
            }
            if let Some(before) = before {
                let lifted = lifted.get_mut(before.number())?;
                // It is gone and comes back.
                if *lifted {
                    return None;
                }
                *lifted = true;
            }
            let under = placed.entry(group.parent).or_default();
            under.push(PlacedGroup { group: Arc::new(group), before });
        }
        for siblings in placed.values_mut() {
            siblings.sort_by(|a, b| order(&a.group).cmp(&order(&b.group)));
        }
        let root = lifted.first().copied().unwrap_or(true);
        (!root).then_some(LiftedGroups { lifted, placed })
    }

    /// Returns the groups that have one of some names.
    pub(crate) fn named<'h>(
        &'h self,
        names: &'h HashSet<&str>,
    ) -> impl Iterator<Item = GroupIndex> + 'h {
        let groups = self.indexes().zip(self.groups());
        groups.filter(|(_, group)| names.contains(group.name.as_str())).map(|(index, _)| index)
    }
}

/// The children of a group that are still to come.
struct Children<'p> {
    /// Where the next one of those before may stand, and the place behind them.
    before: GroupIndex,
    end: GroupIndex,
    placed: Peekable<Iter<'p, PlacedGroup>>,
}

impl<'p> Children<'p> {
    fn of(
        hierarchy: &Hierarchy,
        parent: Option<GroupIndex>,
        placed: Peekable<Iter<'p, PlacedGroup>>,
    ) -> Self {
        let of_before = parent.map(|it| (GroupIndex(it.0 + 1), hierarchy.end(it)));
        let (before, end) = of_before.unwrap_or((GroupIndex(0), GroupIndex(0)));
        Self { before, end, placed }
    }

    /// Takes the child that stands first.
    fn next(
        &mut self,
        hierarchy: &Hierarchy,
        is_lifted: &impl Fn(GroupIndex) -> bool,
    ) -> Option<PlacedGroup> {
        while self.before < self.end && is_lifted(self.before) {
            self.before = hierarchy.end(self.before);
        }
        let stays = (self.before < self.end).then_some(self.before);
        let Some(index) = stays else { return self.placed.next().cloned() };
        let group = hierarchy.groups.get(index.number())?;
        let goes_first = |it: &&PlacedGroup| order(&it.group) < order(group);
        if let Some(first) = self.placed.next_if(goes_first) {
            return Some(first.clone());
        }
        self.before = hierarchy.end(index);
        Some(PlacedGroup { group: Arc::clone(group), before: Some(index) })
    }
}
