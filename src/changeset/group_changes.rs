//! The groups that a write makes, edits and removes.

use hashbrown::{HashMap, HashSet};

use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{EnvironmentName, Group, GroupId};

/// What a write does to the groups of a commit; all others stay.
#[derive(Debug, Default)]
pub(super) struct GroupChanges {
    /// The groups that say something else than before, in the order of the tree, then those that are new.
    pub(super) written: Vec<Group>,
    pub(super) removed: Vec<GroupId>,
}

impl GroupChanges {
    /// Replaces a group, or makes it.
    pub(super) fn of(old: &Hierarchy, group: Group) -> Self {
        let stays = old.find(group.id).is_some_and(|it| *old.group(it) == group);
        Self { written: if stays { Vec::new() } else { vec![group] }, removed: Vec::new() }
    }

    pub(super) fn removal(id: GroupId) -> Self {
        Self { written: Vec::new(), removed: vec![id] }
    }

    /// Returns what leads to a whole set of groups, each of which has an id of its own.
    pub(super) fn between(old: &Hierarchy, groups: Vec<Group>) -> Self {
        let ids: HashSet<GroupId> = groups.iter().map(|it| it.id).collect();
        let removed = old.groups().map(|it| it.id).filter(|it| !ids.contains(it)).collect();
        let differs = |it: &Group| old.find(it.id).is_none_or(|before| old.group(before) != it);
        let mut written: Vec<Group> = groups.into_iter().filter(differs).collect();
        written.sort_by_key(|it| old.find(it.id).map_or(usize::MAX, GroupIndex::number));
        Self { written, removed }
    }

    /// Returns the tree of all groups after the write; `None` if they may not form one, or the root group comes,
    /// goes or has another rule.
    pub(super) fn tree(&self, old: &Hierarchy) -> Option<Hierarchy> {
        let written = || self.written.iter().cloned();
        if self.keep_tree(old)
            && let Some((hierarchy, _)) = old.amended(written())
        {
            return Some(hierarchy);
        }
        let has_names = self.have_names_of_their_own(old);
        has_names.then(|| old.restructured(&self.removed, written().collect()))?
    }

    fn keep_tree(&self, old: &Hierarchy) -> bool {
        let keeps_parent = |it: &Group| {
            old.find(it.id).is_some_and(|before| old.group(before).parent == it.parent)
        };
        self.removed.is_empty() && self.written.iter().all(keeps_parent)
    }

    /// Returns whether no environment has the name of a written group twice.
    fn have_names_of_their_own(&self, old: &Hierarchy) -> bool {
        let names: HashSet<&str> = self.written.iter().map(|it| it.name.as_str()).collect();
        let name = |group: &Group| (group.name.clone(), group.environment.clone());
        let mut seen: HashSet<(_, EnvironmentName)> = HashSet::new();
        let written: HashSet<GroupId> = self.written.iter().map(|it| it.id).collect();
        let removed: HashSet<GroupId> = self.removed.iter().copied().collect();
        let stays = |it: &&Group| !written.contains(&it.id) && !removed.contains(&it.id);
        let others = old.named(&names).map(|it| old.group(it)).filter(stays);
        seen.extend(others.map(name));
        self.written.iter().all(|it| seen.insert(name(it)))
    }

    /// Returns all groups after the write.
    pub(super) fn all(&self, old: &Hierarchy) -> Vec<Group> {
        let written: HashMap<GroupId, &Group> =
            self.written.iter().rev().map(|it| (it.id, it)).collect();
        let removed: HashSet<GroupId> = self.removed.iter().copied().collect();
        let stay = old.groups().filter(|it| !removed.contains(&it.id));
        let old_ones = stay.map(|it| written.get(&it.id).copied().unwrap_or(it).clone());
        let new_ones = self.written.iter().filter(|it| old.find(it.id).is_none()).cloned();
        old_ones.chain(new_ones).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::read_group;
    use super::*;
    use crate::hierarchy::root_group;

    fn group(number: u8, rng: &mut fastrand::Rng) -> Group {
        let id = |number: u8| match number {
            0 => GroupId::ROOT.to_string(),
            number => format!("aaaaaaaa-0000-4000-8000-{number:012}"),
        };
        let environment = *rng.choice(["production", "dev"].as_slice()).unwrap();
        let body = json!({
            "name": format!("group {}", rng.u8(..20)), "parent": id(rng.u8(..9)),
            "environment": environment, "classes": {},
        });
        Group { id: id(number).parse().unwrap(), ..read_group(&body).unwrap() }
    }

    #[test]
    fn the_tree_is_that_of_all_groups() {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut old = Hierarchy::build(root_group().into_iter().collect()).unwrap();
        let (mut trees, mut faults) = (0, 0);
        for _ in 0..4000 {
            let mut groups: Vec<Group> = old.groups().cloned().collect();
            for _ in 0..rng.usize(1..4) {
                let first = u8::from(rng.u8(..20) > 0);
                let number = rng.u8(first..9);
                let group = group(number, &mut rng);
                match groups.iter().position(|it| it.id == group.id) {
                    Some(at) if rng.u8(..3) == 0 && number > 0 => drop(groups.remove(at)),
                    Some(at) => groups[at] = group,
                    None => groups.push(group),
                }
            }
            let changes = GroupChanges::between(&old, groups.clone());
            let all = Hierarchy::build(changes.all(&old));
            let writes_root = changes.written.iter().any(|it| it.id == GroupId::ROOT);
            match (changes.tree(&old), Hierarchy::build(groups)) {
                (Some(found), Ok(expected)) => {
                    assert!(found.groups().eq(expected.groups()));
                    assert!(all.unwrap().groups().eq(expected.groups()));
                    old = found;
                    trees += 1;
                }
                (found, expected) => {
                    assert!(found.is_none() && (writes_root || expected.is_err()));
                    assert_eq!(all.is_err(), expected.is_err());
                    faults += 1;
                }
            }
        }
        assert!(trees > 500 && faults > 500, "{trees} {faults}");
    }

    #[test]
    fn a_group_that_stays_as_it_is_is_not_written() {
        let root = root_group().unwrap();
        let old = Hierarchy::build(vec![root.clone()]).unwrap();
        assert!(GroupChanges::of(&old, root.clone()).written.is_empty());
        let changes = GroupChanges::between(&old, vec![root]);
        assert!(changes.written.is_empty() && changes.removed.is_empty());
    }
}
