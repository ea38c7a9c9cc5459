//! What may be meant by groups that tests expect and that do not exist.

use super::verdict::TestVerdict;
use crate::diagnostic::KnownNames;
use crate::hierarchy::Hierarchy;

/// For how many groups that do not exist others are looked for that may be meant: each is compared with all.
const SUGGESTED: usize = 1_000;

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
