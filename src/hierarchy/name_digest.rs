//! A digest of a group's name.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A part of the hash of a name: groups of one name have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NameDigest(u32);

impl NameDigest {
    pub(super) fn of(name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        #[expect(clippy::cast_possible_truncation, reason = "a part of it")]
        Self(hasher.finish() as u32)
    }
}
