//! Where a caller may write, and which keys.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashSet;
use serde::Serialize;
use serde_json::Value;

use super::group_changes::GroupChanges;
use super::rejection::{Rejection, RejectionKind};
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

/// The right to write: what it covers, and who has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WriteGrant {
    /// The name of its holder; none without authentication.
    pub actor: Option<String>,
    /// What it allows to change.
    pub scope: Scope,
}

/// Returns the first grant that allows a change as a whole; grants never add up.
///
/// # Errors
///
/// Returns what the first grant does not allow.
pub(super) fn first_allowing(
    grants: &[WriteGrant],
    check: impl Fn(&Scope) -> Result<(), Rejection>,
) -> Result<&WriteGrant, Rejection> {
    let mut refused: Option<Rejection> = None;
    for grant in grants {
        match (check(&grant.scope), &mut refused) {
            (Ok(()), _) => return Ok(grant),
            // The words of the first, and another commit may still have the change allowed by this one.
            (Err(Rejection { kind: kind @ RejectionKind::PermissionUnknown, .. }), Some(first)) => {
                first.kind = kind;
            }
            (Err(_), Some(_)) => {}
            (Err(rejection), None) => refused = Some(rejection),
        }
    }
    Err(refused.unwrap_or_else(|| Rejection::denied("change groups", Value::Null)))
}

impl Scope {
    /// Checks that the scope allows to make and remove environments, which stand below no group.
    pub(super) fn check_environments(&self) -> Result<(), Rejection> {
        self.check_unlimited("make or remove environments")
    }

    /// Checks that the scope allows to update class catalogues, which belong to environments.
    pub(super) fn check_catalogues(&self) -> Result<(), Rejection> {
        self.check_unlimited("update classes")
    }

    fn check_unlimited(&self, what: &str) -> Result<(), Rejection> {
        if self.is_unlimited() { Ok(()) } else { Err(Rejection::denied(what, Value::Null)) }
    }

    /// Returns whether the scope allows to change everything.
    pub(super) fn is_unlimited(&self) -> bool {
        self.groups.is_none() && self.keys.is_none()
    }

    /// Checks that a group can be made below the parent that a body names; `what` is in the refusal.
    pub(super) fn check_make(
        &self,
        old: &Hierarchy,
        (id, body): (GroupId, &Value),
        what: &str,
    ) -> Result<(), Rejection> {
        match parent_of(body) {
            _ if self.keys.is_some() => Err(denied(what, id)),
            Some(parent) if !self.has(old, parent) => Err(denied_place(what, id)),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns whether the scope has a group, and allows to edit any of its keys.
    pub fn reaches(&self, old: &Hierarchy, group: GroupId) -> bool {
        self.check_reach(old, group).is_ok()
    }

    /// Checks that the scope has a group, and allows to edit any of its keys.
    pub(super) fn check_reach(&self, old: &Hierarchy, group: GroupId) -> Result<(), Rejection> {
        if self.has(old, group) && self.keys.as_ref().is_none_or(|keys| !keys.is_empty()) {
            return Ok(());
        }
        let what = change_group(group);
        let has_keys = self.keys.as_ref().is_none_or(|keys| !keys.is_empty());
        Err(if has_keys { denied_place(&what, group) } else { denied(&what, group) })
    }

    /// Checks that the scope allows to edit a key of a group.
    pub(super) fn check_edit(
        &self,
        old: &Hierarchy,
        group: &Group,
        key: GroupKey,
    ) -> Result<(), Rejection> {
        self.check_reach(old, group.id)?;
        if self.has_key(key) {
            return Ok(());
        }
        let what = format!("edit `{}` of the group \"{}\"", key.as_str(), group.name);
        Err(denied(&what, group.id))
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
    pub(super) fn check(&self, old: &Hierarchy, changes: &GroupChanges) -> Result<(), Rejection> {
        let made: Vec<&Group> =
            changes.written.iter().filter(|it| old.find(it.id).is_none()).collect();
        let new: HashSet<GroupId> = made.iter().map(|it| it.id).collect();
        let written = changes.written.iter().map(|it| (old.find(it.id), Some(it)));
        let removed = changes.removed.iter().map(|it| (old.find(*it), None));
        let known: BTreeMap<GroupIndex, Option<&Group>> =
            written.chain(removed).filter_map(|(index, after)| Some((index?, after))).collect();
        for (index, after) in known {
            let before = old.group(index);
            match after {
                None => self.check_remove(old, before)?,
                Some(after) => self.check_change(old, before, after, &new)?,
            }
        }
        for group in made {
            // A parent that is new itself is checked as a new group.
            if !new.contains(&group.parent) && !self.has_whole(old, group.parent) {
                let what = format!("make the group \"{}\" there", group.name);
                return Err(match &self.keys {
                    Some(_) => denied(&what, group.id),
                    None => denied_place(&what, group.id),
                });
            }
        }
        Ok(())
    }

    /// Returns whether the scope has all groups that are there and written or removed.
    pub(super) fn has_all(&self, old: &Hierarchy, changes: &GroupChanges) -> bool {
        let mut changed =
            changes.written.iter().map(|it| it.id).chain(changes.removed.iter().copied());
        changed.all(|id| old.find(id).is_none() || self.has(old, id))
    }

    /// Returns whether groups can be made below a group, and the group itself be removed.
    fn has_whole(&self, old: &Hierarchy, group: GroupId) -> bool {
        self.keys.is_none() && self.has(old, group)
    }

    /// Checks that a group can be removed.
    pub(super) fn check_remove(&self, old: &Hierarchy, group: &Group) -> Result<(), Rejection> {
        self.check_reach(old, group.id)?;
        if self.has_whole(old, group.id) {
            return Ok(());
        }
        Err(denied(&format!("remove the group \"{}\"", group.name), group.id))
    }

    fn check_change(
        &self,
        old: &Hierarchy,
        before: &Group,
        after: &Group,
        new: &HashSet<GroupId>,
    ) -> Result<(), Rejection> {
        self.check_reach(old, before.id)?;
        for key in changed_keys(before, after) {
            self.check_edit(old, before, key)?;
        }
        // A parent that is new is checked as a new group.
        let is_moved = before.parent != after.parent && !new.contains(&after.parent);
        if is_moved && !self.has(old, after.parent) {
            let what = format!("move the group \"{}\" there", before.name);
            return Err(denied_place(&what, before.id));
        }
        Ok(())
    }
}

/// Returns the parent that a body names.
pub(super) fn parent_of(body: &Value) -> Option<GroupId> {
    body.get("parent")?.as_str()?.parse().ok()
}

/// Says what a client does that changes a group; the name of one that it may not read is not shown.
pub(super) fn change_group(group: GroupId) -> String {
    format!("change the group {group}")
}

fn denied(what: &str, group: GroupId) -> Rejection {
    Rejection::denied(what, group.to_string())
}

/// Returns the refusal for a place that the scope lacks: the same whether there is such a group or not, since either may come
/// into the scope with another commit.
fn denied_place(what: &str, group: GroupId) -> Rejection {
    Rejection { kind: RejectionKind::PermissionUnknown, ..denied(what, group) }
}

#[cfg(test)]
mod tests;
