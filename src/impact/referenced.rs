//! The facts that values mention: what comes out of the values of a group follows from them.

use std::collections::BTreeMap;

use hashbrown::HashSet;

use crate::classification::{FactReference, references_of_group};
use crate::model::{Group, GroupId};

/// The facts that the values of groups mention in either state, by the identity of the group. Most groups mention
/// none.
#[derive(Debug, Default)]
pub(super) struct References(BTreeMap<GroupId, Vec<FactReference>>);

impl References {
    /// Returns those of a group, each once.
    pub(super) fn of(&self, identity: GroupId) -> &[FactReference] {
        self.0.get(&identity).map_or(&[], Vec::as_slice)
    }
}

impl<'g> FromIterator<(GroupId, &'g Group)> for References {
    fn from_iter<I: IntoIterator<Item = (GroupId, &'g Group)>>(groups: I) -> Self {
        let mut all: BTreeMap<GroupId, HashSet<FactReference>> = BTreeMap::new();
        for (identity, group) in groups {
            references_of_group(group, &mut |it| {
                let known = all.entry(identity).or_default();
                if !known.contains(it) {
                    known.insert(it.clone());
                }
            });
        }
        let listed = |(identity, known): (GroupId, HashSet<FactReference>)| {
            (identity, known.into_iter().collect())
        };
        Self(all.into_iter().map(listed).collect())
    }
}
