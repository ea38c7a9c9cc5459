//! What a route requires of its callers.

use axum::http::Method;

use super::grants::Caller;
use super::roles::Role;
use crate::http::error::ApiError;

/// What a route requires of its callers. One grant has to meet it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) enum Requirement {
    /// Nothing: a probe, which is answered beyond the connection limit as well.
    Probe,
    /// Nothing.
    Public,
    /// A signature of the body, which the handler verifies.
    Signature,
    /// A role, for all nodes.
    Role(Role),
    /// A role, for the node that the path names: an agent's certificate has it for its own node.
    NodeInPath(Role),
    /// A role, for at least one node: the handler checks the node that the body names.
    NodeInBody(Role),
}

impl Requirement {
    /// Returns what requests require that no route answers: to read, or to write.
    pub(in crate::http) fn by_kind(method: &Method) -> Self {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        Self::Role(if reads { Role::Read } else { Role::Write })
    }

    /// Returns whether it is met by all who can connect.
    pub(in crate::http) fn is_open(self) -> bool {
        matches!(self, Self::Probe | Self::Public | Self::Signature)
    }

    /// Returns the role of the requirement, for the document.
    pub(in crate::http) fn role(self) -> Option<Role> {
        match self {
            Self::Probe | Self::Public | Self::Signature => None,
            Self::Role(role) | Self::NodeInPath(role) | Self::NodeInBody(role) => Some(role),
        }
    }

    /// Returns whether a caller meets it; `node` is the one that the path names.
    pub(in crate::http) fn is_met_by(self, caller: &Caller, node: Option<&str>) -> bool {
        match self {
            Self::Probe | Self::Public | Self::Signature => true,
            Self::Role(role) => caller.may(role, None),
            Self::NodeInPath(role) => caller.may(role, node),
            Self::NodeInBody(role) => caller.may_for_some_node(role),
        }
    }

    /// Checks a caller; `node` is the one that the path names.
    ///
    /// # Errors
    ///
    /// Returns 401 for an anonymous caller and 403 for one without the role.
    pub(in crate::http) fn check(
        self,
        caller: &Caller,
        node: Option<&str>,
    ) -> Result<(), ApiError> {
        match self.role() {
            Some(role) if !self.is_met_by(caller, node) => Err(denied(caller, role)),
            _ => Ok(()),
        }
    }
}

/// Returns the error for a caller who lacks a role.
pub(in crate::http) fn denied(caller: &Caller, role: Role) -> ApiError {
    match caller.name() {
        None => ApiError::unauthenticated(caller.ways),
        Some(name) => ApiError::permission_denied(name, role.as_str()),
    }
}
