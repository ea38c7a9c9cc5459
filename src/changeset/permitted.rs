//! The rights that a write needs, as far as they are known before it is computed.

use serde_json::Value;

use super::operation::Operation;
use super::rejection::Rejection;
use super::scope::{Scope, WriteGrant, first_allowing};
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
        first_allowing(grants, |scope| check(scope, hierarchy, operation))?;
        Ok(Self { operation, grants })
    }
}

/// Checks what is known of a write before it is computed: where it is about a group that exists, whether a scope has
/// the group.
pub(super) fn check(
    scope: &Scope,
    old: &Hierarchy,
    operation: &Operation,
) -> Result<(), Rejection> {
    let known = |id: GroupId| old.find(id).map(|index| old.group(index));
    match operation {
        Operation::Create { id, body } => scope.check_make(old, *id, body),
        Operation::Put { id, body } => match known(*id) {
            Some(_) => scope.check_reach(old, *id),
            None => scope.check_make(old, *id, body),
        },
        Operation::Edit { id, .. } if known(*id).is_some() => scope.check_reach(old, *id),
        Operation::Delete { id } => match known(*id) {
            Some(group) => scope.check_remove(old, group),
            None => Ok(()),
        },
        Operation::Pin { id, .. } | Operation::Unpin { id, .. } => match known(*id) {
            Some(group) => scope.check_edit(old, group, GroupKey::Pinned),
            None => Ok(()),
        },
        Operation::UnpinFromAll { .. } if !scope.has_key(GroupKey::Pinned) => {
            Err(Rejection::denied("unpin nodes", Value::Null))
        }
        Operation::RemoveEnvironment { .. } => scope.check_environments(),
        Operation::UpdateClasses { .. } => scope.check_catalogues(),
        // What they come down to is not known yet, or the client names something that does not exist.
        Operation::Edit { .. }
        | Operation::UnpinFromAll { .. }
        | Operation::Import { .. }
        | Operation::MakeEnvironment { .. } => Ok(()),
    }
}
