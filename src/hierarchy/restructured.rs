//! Hierarchies that have other groups than one before, or the same ones elsewhere.
//!
//! Only the groups that differ are compared with their siblings; all others keep their order.

use std::iter::Peekable;
use std::slice::Iter;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::build::order;
use super::name_digest::NameDigest;
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
        let count = self.len() + placed.values().map(Vec::len).sum::<usize>()
            - lifted.iter().filter(|it| **it).count();
        let mut other = OtherShape::new(self, count);
        let top = PlacedGroup { group: Arc::clone(self.groups.get(0)?), before: Some(self.root()) };
        let mut open: Vec<(GroupIndex, Children<'_>)> = Vec::new();
        let mut next = Some((self.root(), top));
        loop {
            if let Some((parent, placed_group)) = next.take() {
                let PlacedGroup { group, before } = &placed_group;
                let under = placed.get(&group.id).map_or(&[][..], Vec::as_slice);
                let children = Children::of(self, *before, under.iter().peekable());
                open.push((other.add(parent, placed_group)?, children));
            }
            let Some((index, children)) = open.last_mut() else { break };
            next = children.next(self, &is_lifted).map(|it| (*index, it));
            if next.is_none() {
                other.close(*index)?;
                open.pop();
            }
        }
        // A group whose parent is gone, or is below it, is never reached.
        (other.groups.len() == count).then(|| other.finish())?
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
}

/// A hierarchy that is made of one before, group by group.
struct OtherShape<'h> {
    before: &'h Hierarchy,
    groups: Vec<Arc<Group>>,
    names: Vec<NameDigest>,
    links: Vec<Link>,
    /// Where the groups before stand now, by number.
    after: Vec<Option<GroupIndex>>,
    new: Vec<(GroupId, GroupIndex)>,
}

impl<'h> OtherShape<'h> {
    fn new(before: &'h Hierarchy, count: usize) -> Self {
        Self {
            before,
            groups: Vec::with_capacity(count),
            names: Vec::with_capacity(count),
            links: Vec::with_capacity(count),
            after: vec![None; before.len()],
            new: Vec::new(),
        }
    }

    /// Adds the next group; `None` if it has been added already.
    fn add(&mut self, parent: GroupIndex, placed: PlacedGroup) -> Option<GroupIndex> {
        let PlacedGroup { group, before } = placed;
        let index = self.next()?;
        let name = match before {
            Some(before) => {
                if self.after.get_mut(before.number())?.replace(index).is_some() {
                    return None;
                }
                // A group that has another name is another one.
                let is_it = |it: &Arc<Group>| Arc::ptr_eq(it, &group);
                let stays = self.before.groups.get(before.number()).is_some_and(is_it);
                self.before.names.get(before.number()).copied().filter(|_| stays)
            }
            None => {
                self.new.push((group.id, index));
                None
            }
        };
        self.names.push(name.unwrap_or_else(|| NameDigest::of(group.name.as_str())));
        self.links.push(Link { parent, end: index });
        self.groups.push(group);
        Some(index)
    }

    /// Ends the descendants of a group.
    fn close(&mut self, index: GroupIndex) -> Option<()> {
        let end = self.next()?;
        self.links.get_mut(index.number())?.end = end;
        Some(())
    }

    fn next(&self) -> Option<GroupIndex> {
        Some(GroupIndex(u32::try_from(self.groups.len()).ok()?))
    }

    /// Returns the hierarchy; `None` if two groups have one id.
    fn finish(self) -> Option<Hierarchy> {
        // To look up each id would take longer than to change all places.
        let mut by_id = self.before.shape.by_id.clone();
        by_id.retain(|_, place| match self.after.get(place.number()).copied().flatten() {
            Some(after) => {
                *place = after;
                true
            }
            None => false,
        });
        for (id, place) in self.new {
            if by_id.insert(id, place).is_some() {
                return None;
            }
        }
        let shape = Lineage { links: self.links.into(), by_id };
        Some(Hierarchy {
            groups: self.groups.into_iter().collect(),
            names: self.names.into(),
            shape: Arc::new(shape),
        })
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
