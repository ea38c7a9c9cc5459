//! Groups by name, without a table of names.

use hashbrown::HashSet;

use super::name_digest::NameDigest;
use super::{GroupIndex, Hierarchy};

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
