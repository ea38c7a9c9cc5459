//! Roles: what a caller may do.

use std::str::FromStr;

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Classify any node, with any facts.
    Classify,
    /// Store the facts and trusted data of a node for later requests.
    CheckIn,
    /// Read groups, catalogues, check-ins, status and metrics.
    Read,
    /// Change groups.
    Write,
    /// Reconcile, pin and resume.
    Operate,
}

impl Role {
    /// Every role.
    pub(crate) const ALL: [Self; 5] =
        [Self::Classify, Self::CheckIn, Self::Read, Self::Write, Self::Operate];

    /// Returns the word of the settings.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Classify => "classify",
            Self::CheckIn => "check-in",
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
            Self::CheckIn => 16,
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == text);
        found.ok_or_else(|| {
            let known = Self::ALL.map(|role| format!("`{}`", role.as_str())).join(", ");
            format!("unknown role `{text}`: expected one of {known}")
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

    /// Returns whether all of some roles are in it.
    pub(crate) fn has_all(self, roles: Self) -> bool {
        self.0 & roles.0 == roles.0
    }
}
