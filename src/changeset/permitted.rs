//! The rights that a write needs, as far as they are known before it is computed.

use std::cell::OnceCell;

use serde_json::Value;

use super::group_changes::GroupChanges;
use super::operation::{self, Operation};
use super::rejection::{Rejection, RejectionKind};
use super::scope::{Scope, WriteGrant, change_group, first_allowing, parent_of};
use crate::hierarchy::{GroupKey, Hierarchy};
use crate::model::GroupId;

/// A write that one grant of its client can allow: its errors may show the group that it is about.
///
/// The changes that it comes down to are checked when it is computed.
#[derive(Clone, Copy, Debug)]
pub struct PermittedWrite<'w> {
    pub(super) operation: &'w Operation,
    pub(super) grants: &'w [WriteGrant],
}

impl<'w> PermittedWrite<'w> {
    /// Checks the rights of a write to some groups, which is much less work than to compute it.
    ///
    /// # Errors
    ///
    /// Returns what the first grant does not allow. It shows nothing of a group that the grant lacks.
    pub fn new(
        hierarchy: &Hierarchy,
        operation: &'w Operation,
        grants: &'w [WriteGrant],
    ) -> Result<Self, Rejection> {
        Self::of(hierarchy, operation, grants, operation::changes_of_group)
    }

    /// Checks the rights of an import as well, which is as much work as to compute it.
    ///
    /// # Errors
    ///
    /// Returns what the first grant does not allow.
    pub fn of_any(
        hierarchy: &Hierarchy,
        operation: &'w Operation,
        grants: &'w [WriteGrant],
    ) -> Result<Self, Rejection> {
        Self::of(hierarchy, operation, grants, operation::changes_of_groups)
    }

    fn of(
        hierarchy: &Hierarchy,
        operation: &'w Operation,
        grants: &'w [WriteGrant],
        changes_of: impl Fn(&Hierarchy, &Operation) -> Option<GroupChanges>,
    ) -> Result<Self, Rejection> {
        let changes = OnceCell::new();
        first_allowing(grants, |scope| {
            check(scope, hierarchy, operation)?;
            if scope.is_unlimited() {
                return Ok(());
            }
            // Before anything is said of other groups: whether one has the name, or is a parent.
            match changes.get_or_init(|| changes_of(hierarchy, operation)) {
                Some(changes) => check_changes(scope, hierarchy, operation, changes),
                None => Ok(()),
            }
        })?;
        Ok(Self { operation, grants })
    }
}

/// Checks the groups that a write changes.
///
/// An import is about all groups. The first one that differs would tell a client that may not read them which there are and
/// what is in them, a request after the other; so of those that the scope lacks nothing is said, and they come first.
pub(super) fn check_changes(
    scope: &Scope,
    old: &Hierarchy,
    operation: &Operation,
    changes: &GroupChanges,
) -> Result<(), Rejection> {
    let is_import = matches!(operation, Operation::Import { .. });
    if is_import && !scope.has_all(old, changes) {
        let refusal = Rejection::denied("replace groups where you may not write", Value::Null);
        return Err(Rejection { kind: RejectionKind::PermissionUnknown, ..refusal });
    }
    scope.check(old, changes)
}

/// Checks what is known of a write before it is computed: where it is about a group, whether a scope has the group. One that
/// is not there is in no scope that is limited to groups.
pub(super) fn check(
    scope: &Scope,
    old: &Hierarchy,
    operation: &Operation,
) -> Result<(), Rejection> {
    let known = |id: GroupId| old.find(id).map(|index| old.group(index));
    match operation {
        Operation::Create { id, body } => scope.check_make(old, (*id, body), "make a group there"),
        Operation::Put { id, body } => match known(*id) {
            Some(_) => scope.check_reach(old, *id),
            None => {
                // The same words as of a group that is there.
                scope.check_make(old, (*id, body), &change_group(*id))?;
                // What is wrong with a body is said of a group of the scope alone, or of one to be made.
                let names_place =
                    parent_of(body).is_some() && operation::same_id(*id, body).is_ok();
                if names_place { Ok(()) } else { scope.check_reach(old, *id) }
            }
        },
        Operation::Edit { id, .. } => scope.check_reach(old, *id),
        Operation::Delete { id } => match known(*id) {
            Some(group) => scope.check_remove(old, group),
            None => scope.check_reach(old, *id),
        },
        Operation::Pin { id, .. } | Operation::Unpin { id, .. } => match known(*id) {
            Some(group) => scope.check_edit(old, group, GroupKey::Pinned),
            None => scope.check_reach(old, *id),
        },
        Operation::UnpinFromAll { .. } if !scope.has_key(GroupKey::Pinned) => {
            Err(Rejection::denied("unpin nodes", Value::Null))
        }
        Operation::RemoveEnvironment { .. } => scope.check_environments(),
        Operation::UpdateClasses { .. } => scope.check_catalogues(),
        // What they come down to is not known yet.
        Operation::UnpinFromAll { .. }
        | Operation::Import { .. }
        | Operation::MakeEnvironment { .. } => Ok(()),
    }
}
