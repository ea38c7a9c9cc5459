//! Groups by name, without a table of names.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use hashbrown::HashSet;

use super::{GroupIndex, Hierarchy};

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

impl Hierarchy {
    /// Returns the groups that have one of some names.
    pub(crate) fn named<'h>(
        &'h self,
        names: &'h HashSet<&str>,
    ) -> impl Iterator<Item = GroupIndex> + 'h {
        let digests: HashSet<NameDigest> = names.iter().map(|it| NameDigest::of(it)).collect();
        let alike = self.indexes().zip(self.names.iter());
        let alike = alike.filter(move |(_, digest)| digests.contains(*digest));
        let named = alike.filter(|(index, _)| names.contains(self.group(*index).name.as_str()));
        named.map(|(index, _)| index)
    }
}
