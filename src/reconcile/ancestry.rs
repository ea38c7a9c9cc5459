//! Reading which commits of a repository contain which, for decisions of the state.

use super::state::{AncestryAnswer, AncestryGap, CommitPair, KnownAncestry};
use crate::git::Repository;

/// How many answers a decision reads at most: more than there are announced commits, with those that other threads
/// make necessary meanwhile.
const MOST_READ: usize = 256;

/// Decides by what is known of a history. What a decision asks for beside that is read, and the decision is made again by
/// what is then the state: `decide` takes the locks that it needs and returns without them, so nothing waits for the
/// history. It must change nothing where there is a gap. Where reading is not wanted any more, the decision with a gap is
/// returned.
pub(super) fn decide_by_history<D>(
    known: &mut KnownAncestry,
    read: impl Fn(CommitPair) -> AncestryAnswer,
    is_wanted: impl Fn() -> bool,
    mut decide: impl FnMut(&KnownAncestry) -> D,
) -> D {
    let mut reads = 0;
    loop {
        known.begin();
        let decision = decide(known);
        match known.gap() {
            Some(AncestryGap::Unknown(pair)) if reads < MOST_READ && is_wanted() => {
                // It may hold a lock.
                drop(decision);
                known.insert(pair, read(pair));
                reads += 1;
            }
            Some(_) | None => {
                known.keep_asked();
                return decision;
            }
        }
    }
}

/// Reads whether a repository has one commit in the history of another. A commit that is missing or damaged shows no
/// ancestors, as one that was live before the mirror was lost.
pub(super) fn read_ancestry(repository: &Repository, pair: CommitPair) -> AncestryAnswer {
    let CommitPair { ancestor, descendant } = pair;
    let read = repository.read_ancestry(ancestor, descendant);
    let is_final = match read {
        Ok(Some(is_ancestor)) => is_ancestor || !repository.is_shallow(),
        Ok(None) | Err(_) => false,
    };
    AncestryAnswer { is_ancestor: read.map(|it| it.unwrap_or(false)), is_final }
}
