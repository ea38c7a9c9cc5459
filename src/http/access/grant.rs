//! A grant, as an entry of a file gives it.

use super::roles::Roles;
use crate::changeset::Scope;

/// Roles, and the changes that `write` is limited to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::http) struct Grant {
    pub(super) roles: Roles,
    pub(super) scope: Scope,
}

impl Grant {
    /// Returns a grant that is not limited to groups or keys.
    pub(super) fn everywhere(roles: Roles) -> Self {
        Self { roles, scope: Scope::default() }
    }
}
