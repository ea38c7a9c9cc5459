//! Files whose groups are new, gone, renamed or moved.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::{ChangedTree, FileDifference};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{EnvironmentName, Group, GroupId};
use crate::validation::checked::Checked;
use crate::validation::checks;
use crate::validation::group::{GroupFile, ParentName};
use crate::validation::places::Places;

/// How many groups may differ, those before and those now counted: beyond, a check of all takes no longer.
const GROUPS: usize = 256;

/// The groups that have a name.
#[derive(Debug, Default)]
struct Holders<'g> {
    /// Those in files that do not differ.
    staying: Vec<(GroupId, &'g EnvironmentName)>,
    /// Those in files that differ, before and now.
    old: Vec<(GroupId, &'g EnvironmentName)>,
    new: Vec<(GroupId, &'g EnvironmentName)>,
}

impl Holders<'_> {
    /// Returns whether the name stands for other groups than before.
    fn differ(&self) -> bool {
        let ids = |of: &[(GroupId, &EnvironmentName)]| -> HashSet<GroupId> {
            of.iter().map(|(id, _)| *id).collect()
        };
        ids(&self.old) != ids(&self.new)
    }

    /// Returns whether no environment has the name twice.
    fn are_unique(&self) -> bool {
        let mut seen: HashSet<&EnvironmentName> = self.staying.iter().map(|it| it.1).collect();
        self.new.iter().all(|(_, environment)| seen.insert(environment))
    }

    /// Returns the one group of the name, if there is one.
    fn only(&self) -> Option<GroupId> {
        match (self.staying.as_slice(), self.new.as_slice()) {
            ([(id, _)], []) | ([], [(id, _)]) => Some(*id),
            _ => None,
        }
    }
}

impl Checked {
    /// Returns the tree with the groups of some files as they are now; `None` if there may be an error
    /// among the groups, or a group in another file gets another parent.
    pub(super) fn other_tree(
        &self,
        before: &Hierarchy,
        differences: &[FileDifference<'_>],
    ) -> Option<ChangedTree> {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for difference in differences {
            let [before, now] = difference.groups()?;
            old.extend(before.iter().map(|it| it.group().map(|group| (it, group))));
            new.extend(now.iter().map(|it| it.group().map(|group| (it, group))));
            if old.len() + new.len() > GROUPS {
                return None;
            }
        }
        let old: Vec<WrittenGroup<'_>> = old.into_iter().collect::<Option<_>>()?;
        let new: Vec<WrittenGroup<'_>> = new.into_iter().collect::<Option<_>>()?;
        let groups = (self.groups + new.len()).checked_sub(old.len())?;
        let hierarchy = self.placed(before, &old, &new)?;
        if self.groups == 0 || groups == 0 || !checks::is_same_among(before.len(), hierarchy.len())
        {
            return None;
        }
        let changed = new.iter().map(|(_, group)| hierarchy.find(group.id)).collect::<Option<_>>();
        let is_gone = |it: &GroupId| hierarchy.find(*it).is_none();
        let gone: Vec<GroupId> = old.iter().map(|it| it.1.id).filter(is_gone).collect();
        let mut origins = Arc::clone(&self.origins);
        let places = Arc::make_mut(&mut origins);
        for id in &gone {
            places.remove(id);
        }
        places.extend(new.iter().map(|(file, group)| (group.id, file.place())));
        let gone = gone.into_iter().filter_map(|it| before.find(it)).collect();
        Some(ChangedTree { hierarchy, changed: changed?, gone, origins, groups })
    }

    /// Puts the groups of some files in their places.
    fn placed(
        &self,
        before: &Hierarchy,
        old: &[WrittenGroup<'_>],
        new: &[WrittenGroup<'_>],
    ) -> Option<Hierarchy> {
        let ids =
            |of: &[WrittenGroup<'_>]| -> HashSet<GroupId> { of.iter().map(|it| it.1.id).collect() };
        let (old_ids, new_ids) = (ids(old), ids(new));
        let is_taken = |it: &GroupId| before.find(*it).is_some() && !old_ids.contains(it);
        if new_ids.len() < new.len()
            || new_ids.iter().any(is_taken)
            || old_ids.union(&new_ids).any(|it| *it == GroupId::ROOT)
        {
            return None;
        }
        // A parent of another file may be named by what is now the id of another group.
        let fresh = new_ids.difference(&old_ids).map(ToString::to_string).collect::<Vec<_>>();
        let fresh: HashSet<&str> = fresh.iter().map(String::as_str).collect();
        if before.named(&fresh).next().is_some() {
            return None;
        }
        let holders = holders(before, &old_ids, old, new);
        if holders.values().any(|it| !it.are_unique())
            || !self.references_stay(before, &old_ids, &holders)
        {
            return None;
        }
        let placed = new.iter().map(|(file, group)| {
            let parent = match &file.parent {
                None => GroupId::ROOT,
                Some(ParentName::Id(id)) => *id,
                Some(ParentName::Name(name)) => holders.get(&**name)?.only()?,
            };
            Some(Group { parent, ..(*group).clone() })
        });
        let gone: Vec<GroupId> = old_ids.difference(&new_ids).copied().collect();
        before.restructured(&gone, placed.collect::<Option<_>>()?)
    }

    /// Returns whether the groups in other files mean the same groups by the names of their parents.
    fn references_stay(
        &self,
        before: &Hierarchy,
        old_ids: &HashSet<GroupId>,
        holders: &HashMap<&str, Holders<'_>>,
    ) -> bool {
        let places = Places { origins: &self.origins, readings: &self.readings, all: None };
        holders.iter().filter(|(_, it)| it.differ()).all(|(name, it)| {
            // A group that calls one of them its parent is its child.
            let of_before = it.staying.iter().chain(&it.old);
            let known = of_before.filter_map(|(id, _)| before.find(*id));
            let mut children = known.flat_map(|it| before.children(it));
            children.all(|child| {
                let id = before.group(child).id;
                old_ids.contains(&id) || places.of(id).is_some_and(|file| !names_parent(file, name))
            })
        })
    }
}

/// A group as written, and what it says.
type WrittenGroup<'r> = (&'r GroupFile, &'r Group);

/// Returns whether a group names its parent, and so. A name may read as an id.
fn names_parent(file: &GroupFile, name: &str) -> bool {
    match &file.parent {
        Some(ParentName::Name(it)) => **it == *name,
        Some(ParentName::Id(id)) => GroupId::from_canonical(name) == Some(*id),
        None => false,
    }
}

/// Returns the groups of all names that matter: those that groups have in files that differ, and those that they
/// give their parents.
fn holders<'g>(
    before: &'g Hierarchy,
    old_ids: &HashSet<GroupId>,
    old: &[WrittenGroup<'g>],
    new: &[WrittenGroup<'g>],
) -> HashMap<&'g str, Holders<'g>> {
    let mut holders: HashMap<&str, Holders<'_>> = HashMap::new();
    for (_, group) in old {
        let entry = holders.entry(group.name.as_str()).or_default();
        entry.old.push((group.id, &group.environment));
    }
    for (file, group) in new {
        let entry = holders.entry(group.name.as_str()).or_default();
        entry.new.push((group.id, &group.environment));
        if let Some(ParentName::Name(name)) = &file.parent {
            holders.entry(name).or_default();
        }
    }
    let names: HashSet<&str> = holders.keys().copied().collect();
    let staying = |it: &GroupIndex| !old_ids.contains(&before.group(*it).id);
    for index in before.named(&names).filter(staying) {
        let group = before.group(index);
        if let Some(entry) = holders.get_mut(group.name.as_str()) {
            entry.staying.push((group.id, &group.environment));
        }
    }
    holders
}
