//! Where a caller may write, and which keys.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::group_changes::GroupChanges;
use super::rejection::Rejection;
use crate::hierarchy::{GroupIndex, GroupKey, Hierarchy, changed_keys};
use crate::model::{Group, GroupId};

/// What one grant allows to change. The default is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// The groups, each with all groups below it; `None` is every group.
    pub groups: Option<BTreeSet<GroupId>>,
    /// The keys of groups; `None` is every key. A scope with keys creates and deletes no groups, and
    /// moves them only with the key `parent`.
    pub keys: Option<BTreeSet<GroupKey>>,
}

/// Checks that one scope allows a change as a whole; scopes never add up.
///
/// # Errors
///
/// Returns what the first scope does not allow.
pub(super) fn check(
    scopes: &[Scope],
    old: &Hierarchy,
    changes: &GroupChanges,
) -> Result<(), Rejection> {
    let mut refused = None;
    for scope in scopes {
        match scope.check(old, changes) {
            Ok(()) => return Ok(()),
            Err(rejection) => drop(refused.get_or_insert(rejection)),
        }
    }
    Err(refused.unwrap_or_else(|| Rejection::denied("change groups", serde_json::Value::Null)))
}

impl Scope {
    /// Returns whether the scope allows every change, environments and catalogues included.
    pub(super) fn is_everywhere(&self) -> bool {
        self.groups.is_none() && self.keys.is_none()
    }

    /// Returns whether the scope allows to edit a key of a group.
    pub(super) fn allows(&self, hierarchy: &Hierarchy, group: GroupId, key: GroupKey) -> bool {
        self.has(hierarchy, group) && self.has_key(key)
    }

    /// Returns whether the scope has a key. A rule may name nodes, so `rule` includes `pinned`.
    pub(super) fn has_key(&self, key: GroupKey) -> bool {
        self.keys.as_ref().is_none_or(|keys| {
            keys.contains(&key) || key == GroupKey::Pinned && keys.contains(&GroupKey::Rule)
        })
    }

    /// Returns whether a group lies below the groups of the scope, or is one of them.
    fn has(&self, hierarchy: &Hierarchy, group: GroupId) -> bool {
        let Some(groups) = &self.groups else { return true };
        hierarchy.find(group).is_some_and(|index| {
            hierarchy.lineage(index).any(|it| groups.contains(&hierarchy.group(it).id))
        })
    }

    /// Checks that groups are written and removed only where the scope allows it.
    fn check(&self, old: &Hierarchy, changes: &GroupChanges) -> Result<(), Rejection> {
        let written = changes.written.iter().map(|it| (old.find(it.id), Some(it)));
        let removed = changes.removed.iter().map(|it| (old.find(*it), None));
        let known: BTreeMap<GroupIndex, Option<&Group>> =
            written.chain(removed).filter_map(|(index, after)| Some((index?, after))).collect();
        for (index, after) in known {
            let before = old.group(index);
            match after {
                None => self.whole(old, before, before.id, "remove")?,
                Some(after) => self.edited(old, before, after)?,
            }
        }
        let is_written = |id: GroupId| changes.written.iter().any(|it| it.id == id);
        for group in changes.written.iter().filter(|group| old.find(group.id).is_none()) {
            // A parent that is new itself is checked as a new group.
            if old.find(group.parent).is_some() || !is_written(group.parent) {
                self.whole(old, group, group.parent, "make")?;
            }
        }
        Ok(())
    }

    fn whole(
        &self,
        old: &Hierarchy,
        group: &Group,
        place: GroupId,
        verb: &str,
    ) -> Result<(), Rejection> {
        if self.keys.is_none() && self.has(old, place) {
            return Ok(());
        }
        Err(denied(&format!("{verb} the group \"{}\" there", group.name), group.id))
    }

    fn edited(&self, old: &Hierarchy, before: &Group, after: &Group) -> Result<(), Rejection> {
        let keys = changed_keys(before, after);
        if let Some(key) = keys.iter().find(|key| !self.allows(old, before.id, **key)) {
            let what = format!("edit `{}` of the group \"{}\"", key.as_str(), before.name);
            return Err(denied(&what, before.id));
        }
        if before.parent != after.parent && !self.has(old, after.parent) {
            return Err(denied(&format!("move the group \"{}\" there", before.name), before.id));
        }
        Ok(())
    }
}

fn denied(what: &str, group: GroupId) -> Rejection {
    Rejection::denied(what, group.to_string())
}

#[cfg(test)]
mod tests;
