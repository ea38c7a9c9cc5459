//! The id of a node group.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{EnvironmentName, GroupName};

/// The id of a node group: a UUID, written in lower case.
///
/// ```
/// use clade::GroupId;
///
/// let id: GroupId = "58463036-0EFA-4365-B367-B5401C0711D3".parse()?;
/// assert_eq!(id.to_string(), "58463036-0efa-4365-b367-b5401c0711d3");
/// assert!("58463036".parse::<GroupId>().is_err());
/// # Ok::<(), clade::GroupIdError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GroupId(Uuid);

/// How many bytes the text of an id has.
const LENGTH: usize = 36;

/// A string is not the id of a node group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a UUID: 8-4-4-4-12 hexadecimal digits")]
pub struct GroupIdError(pub String);

impl GroupId {
    /// The id of the root group, "All Nodes".
    pub const ROOT: Self = Self(Uuid::from_u128(0x0000_0000_0000_4000_8000_0000_0000_0000));

    /// Returns the id of a group that has none written in its file: the `UUIDv5` of
    /// `clade:group:<environment>/<name>` in the URL namespace.
    pub fn of_name(environment: &EnvironmentName, name: &GroupName) -> Self {
        let text = ["clade:group:", environment.as_str(), "/", name.as_str()].concat();
        Self(Uuid::new_v5(&Uuid::NAMESPACE_URL, text.as_bytes()))
    }

    /// Returns an id that no group is written with, for one of which no id can be told: its document begins at a byte
    /// of a file.
    pub(crate) fn of_document(file: &str, start: u32) -> Self {
        let text = format!("clade:document:{file}#{start}");
        Self(Uuid::new_v5(&Uuid::NAMESPACE_URL, text.as_bytes()))
    }

    /// Returns the id that is written as a text, in lower case; `None` for any other text.
    pub fn from_canonical(text: &str) -> Option<Self> {
        let is_upper = |it: u8| it.is_ascii_uppercase();
        // Nearly all names have another length, for which no error is made.
        let may_be = text.len() == LENGTH && !text.bytes().any(is_upper);
        may_be.then(|| text.parse().ok()).flatten()
    }

    /// Returns the id made of random bits: a `UUIDv4`.
    pub fn from_random(bits: u128) -> Self {
        Self(uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid())
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupId({self})")
    }
}

impl FromStr for GroupId {
    type Err = GroupIdError;

    /// Reads the hyphenated form in either case; no braces, no `urn:`.
    fn from_str(text: &str) -> Result<Self, GroupIdError> {
        let id = (text.len() == LENGTH).then(|| Uuid::try_parse(text).ok()).flatten();
        id.map(Self).ok_or_else(|| GroupIdError(text.to_owned()))
    }
}

impl TryFrom<String> for GroupId {
    type Error = GroupIdError;

    fn try_from(text: String) -> Result<Self, GroupIdError> {
        text.parse()
    }
}

impl From<GroupId> for String {
    fn from(id: GroupId) -> Self {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_form_is_in_lower_case() {
        let text = "58463036-0efa-4365-b367-b5401c0711d3";
        assert_eq!(GroupId::from_canonical(text).map(|it| it.to_string()).as_deref(), Some(text));
        for other in [&text.to_uppercase(), "58463036-0efa-4365-b367-b5401c0711dx", "Web", ""] {
            assert_eq!(GroupId::from_canonical(other), None, "{other}");
        }
    }

    #[test]
    fn reads_the_hyphenated_form_only() {
        for wrong in [
            "",
            "58463036-0efa-4365-b367-b5401c0711d",
            "{58463036-0efa-4365-b367-b5401c0711d}",
            "584630360efa4365b367b5401c0711d3",
            "58463036-0efa-4365-b367-b5401c0711dg",
            "1-2-3-4-5",
        ] {
            assert_eq!(wrong.parse::<GroupId>(), Err(GroupIdError(wrong.to_owned())), "{wrong}");
        }
    }

    #[test]
    fn derives_a_stable_id_from_environment_and_name() {
        let id = GroupId::of_name(&"production".parse().unwrap(), &"Webservers".parse().unwrap());
        // Computed with Python: uuid.uuid5(uuid.NAMESPACE_URL, "clade:group:production/Webservers")
        assert_eq!(id.to_string(), PYTHON);
    }

    const PYTHON: &str = "3f3985bc-a5b3-5ae6-aba0-e5ed442bbea9";
}
