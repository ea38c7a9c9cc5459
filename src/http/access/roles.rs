//! What somebody may do.

use std::str::FromStr;

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Classify any node.
    Classify,
    /// Read groups, catalogues, check-ins, status and metrics.
    Read,
    /// Change groups.
    Write,
    /// Reconcile, pin and resume.
    Operate,
}

impl Role {
    const ALL: [Self; 4] = [Self::Classify, Self::Read, Self::Write, Self::Operate];

    /// Returns the word of the settings.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Classify => "classify",
            Self::Read => "read",
            Self::Write => "write",
            Self::Operate => "operate",
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::Classify => 1,
            Self::Read => 2,
            Self::Write => 4,
            Self::Operate => 8,
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == text);
        found.ok_or_else(|| {
            format!("`{text}` is no role: one of `classify`, `read`, `write`, `operate`")
        })
    }
}

/// A set of roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roles(u8);

impl Roles {
    /// Every role.
    pub(crate) fn all() -> Self {
        Self::of(&Role::ALL)
    }

    /// Returns a set.
    pub(crate) fn of(roles: &[Role]) -> Self {
        Self(roles.iter().fold(0, |bits, role| bits | role.bit()))
    }

    /// Returns whether a role is in it.
    pub(crate) fn has(self, role: Role) -> bool {
        self.0 & role.bit() != 0
    }

    /// Returns both sets together.
    #[must_use]
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
