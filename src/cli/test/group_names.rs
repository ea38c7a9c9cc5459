//! The names of groups that tests expect.

use std::collections::HashMap;

use super::verdict::TestVerdict;
use crate::diagnostic::KnownNames;
use crate::hierarchy::{GroupIndex, Hierarchy};

/// For how many groups that do not exist others are looked for that may be meant: each is compared with all.
const SUGGESTED: usize = 1_000;

/// The groups of each name.
#[derive(Default)]
pub(super) struct GroupNames<'h>(HashMap<&'h str, Vec<GroupIndex>>);

impl<'h> GroupNames<'h> {
    pub(super) fn of(hierarchy: &'h Hierarchy) -> Self {
        let mut names: HashMap<&str, Vec<GroupIndex>> = HashMap::new();
        for index in hierarchy.indexes() {
            names.entry(hierarchy.group(index).name.as_str()).or_default().push(index);
        }
        Self(names)
    }

    pub(super) fn find(&self, name: &str) -> &[GroupIndex] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Says which groups may be meant by expectations of groups that do not exist: for the first tests, whichever
/// thread ran which.
pub(super) fn suggest(verdicts: &mut [TestVerdict<'_>], hierarchy: &Hierarchy) {
    let mismatches = verdicts.iter_mut().flat_map(|it| &mut it.mismatches);
    let mut unknown = mismatches.filter(|it| it.unknown_group.is_some()).peekable();
    if unknown.peek().is_none() {
        return;
    }
    let names = KnownNames::new(hierarchy.groups().map(|it| it.name.as_str()));
    for mismatch in unknown.take(SUGGESTED) {
        let similar = mismatch.unknown_group.as_deref().and_then(|it| names.closest(it));
        mismatch.because.extend(similar.map(|it| format!("did you mean `{it}`?")));
    }
}
