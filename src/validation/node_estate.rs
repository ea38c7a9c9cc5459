//! The part of a valid commit that decides what one node gets.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use super::group::{GroupFile, ParentName};
use super::individual;
use super::reading::{FileParts, FileReading};
use crate::hierarchy::{Estate, Hierarchy, root_group};
use crate::model::{Group, GroupId, Interpolation};

/// Joins some files of a valid commit, those that concern a node, to an estate: the node gets of it what it gets
/// of the whole commit.
///
/// The groups of the files are left out that cannot match the node, with all that stands below them: neither their
/// values nor their places decide anything. `None` if the files do not fit each other, as those of a valid commit do.
pub fn node_estate<'r>(
    files: impl Iterator<Item = &'r FileReading> + Clone,
    interpolation: Interpolation,
    may_match: &dyn Fn(&Group) -> bool,
) -> Option<Estate> {
    let mut written: Vec<(&GroupFile, &Group)> = Vec::new();
    for file in files.clone().flat_map(FileReading::groups) {
        let group = file.group()?;
        if may_match(group) {
            written.push((file, group));
        }
    }
    let hierarchy = Hierarchy::build(below_root(&placed(&written)?)).ok()?;
    let own = files.filter_map(|it| match &it.parts {
        FileParts::Node(found) => Some(&**found),
        _ => None,
    });
    let own: Vec<_> = own.collect();
    let mut found = Vec::new();
    let individuals = individual::join(&own, &mut found);
    found.is_empty().then(|| Estate {
        hierarchy,
        individuals: Arc::new(individuals),
        environments: Arc::default(),
        catalogues: Arc::default(),
        interpolation,
    })
}

/// Returns the groups with their parents, without those whose parent is left out; `None` if a name or an id stands
/// for two of them.
fn placed(written: &[(&GroupFile, &Group)]) -> Option<Vec<Group>> {
    let root = root_group()?;
    let mut by_name: HashMap<&str, Option<GroupId>> = HashMap::with_capacity(written.len());
    let mut ids: HashSet<GroupId> = HashSet::with_capacity(written.len());
    for (_, group) in written {
        let known = by_name.entry(group.name.as_str());
        known.and_modify(|it| *it = None).or_insert(Some(group.id));
        if !ids.insert(group.id) {
            return None;
        }
    }
    if !ids.contains(&GroupId::ROOT) {
        by_name.entry(root.name.as_str()).or_insert(Some(GroupId::ROOT));
    }
    let mut placed = Vec::with_capacity(written.len());
    for (file, group) in written {
        let parent = match &file.parent {
            None => GroupId::ROOT,
            // A name that reads as an id counts where no group has that: the group that has it may have been left out here.
            Some(ParentName::Id(id))
                if !ids.contains(id) && by_name.contains_key(&*id.to_string()) =>
            {
                return None;
            }
            Some(ParentName::Id(id)) => *id,
            Some(ParentName::Name(name)) => match by_name.get(&**name) {
                Some(Some(id)) => *id,
                // The name is that of two groups: in a valid commit, groups are not named so by their children.
                Some(None) => return None,
                None => continue,
            },
        };
        placed.push(Group { parent, ..(*group).clone() });
    }
    Some(placed)
}

/// Returns the groups that the root group is an ancestor of, and itself.
fn below_root(groups: &[Group]) -> Vec<Group> {
    let mut children: BTreeMap<GroupId, Vec<&Group>> = BTreeMap::new();
    for group in groups.iter().filter(|it| it.id != GroupId::ROOT) {
        children.entry(group.parent).or_default().push(group);
    }
    let mut found: Vec<Group> =
        groups.iter().filter(|it| it.id == GroupId::ROOT).cloned().collect();
    let mut waiting = vec![GroupId::ROOT];
    while let Some(parent) = waiting.pop() {
        for group in children.remove(&parent).unwrap_or_default() {
            waiting.push(group.id);
            found.push(group.clone());
        }
    }
    found
}
