//! The builds that are kept.

use indexmap::IndexMap;

use super::build::Built;
use super::outcome::Outcome;
use crate::model::CommitId;

/// How many commits are kept built; they share the files that they have in common.
const KEPT: usize = 256;

/// The builds of the commits used last, the latest at the end.
#[derive(Debug, Default)]
pub(super) struct SnapshotCache(IndexMap<CommitId, Built>);

impl SnapshotCache {
    /// Returns the outcome of a commit, which is then the latest used.
    pub(super) fn get(&mut self, commit: CommitId) -> Option<Outcome> {
        let index = self.0.get_index_of(&commit)?;
        self.0.move_index(index, self.0.len() - 1);
        self.0.get(&commit).map(|it| it.outcome.clone())
    }

    /// Returns the build of a commit.
    pub(super) fn built(&self, commit: CommitId) -> Option<&Built> {
        self.0.get(&commit)
    }

    /// Returns what a commit may be built from: the first of some commits that is kept and valid, or
    /// the latest used.
    pub(super) fn base(&self, wanted: impl IntoIterator<Item = CommitId>) -> Option<Built> {
        let is_valid = |it: &&Built| matches!(it.outcome, Outcome::Valid(_));
        let mut near = wanted.into_iter().filter_map(|it| self.0.get(&it)).filter(is_valid);
        near.next().or_else(|| self.0.values().rev().find(is_valid)).cloned()
    }

    /// Keeps a build, and as many of those used last as fit into so many bytes beside it and the live
    /// one.
    pub(super) fn insert(
        &mut self,
        commit: CommitId,
        built: Built,
        live: Option<CommitId>,
        most_bytes: u64,
    ) {
        self.0.shift_remove(&commit);
        self.0.insert(commit, built);
        let is_needed = |it: &CommitId| *it == commit || Some(*it) == live;
        let of_others = |all: &IndexMap<CommitId, Built>| -> u64 {
            all.iter().filter(|(it, _)| !is_needed(it)).map(|(_, it)| it.bytes).sum()
        };
        while self.0.len() > KEPT || of_others(&self.0) > most_bytes {
            let Some(oldest) = self.0.keys().position(|it| !is_needed(it)) else { return };
            self.evict(oldest);
        }
    }

    /// Evicts a build. What others share with it stays in memory, and counts for one of them from
    /// then on.
    fn evict(&mut self, index: usize) {
        let Some((evicted, gone)) = self.0.shift_remove_index(index) else { return };
        let mut heir = None;
        for (commit, it) in &mut self.0 {
            if it.base != Some(evicted) {
                continue;
            }
            it.base = match heir {
                Some(heir) => Some(heir),
                None => {
                    heir = Some(*commit);
                    it.bytes = it.bytes.saturating_add(gone.bytes);
                    gone.base
                }
            };
        }
    }

    /// Notes whether a commit is one of a write that was not pushed.
    pub(super) fn note_unpushed(&mut self, commit: CommitId, is_unpushed: bool) {
        if let Some(built) = self.0.get_mut(&commit) {
            built.is_unpushed = is_unpushed;
        }
    }

    /// Returns the commits.
    pub(super) fn all(&self) -> Vec<(CommitId, Outcome)> {
        self.0.iter().map(|(commit, it)| (*commit, it.outcome.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Budget, Meter};
    use crate::reconcile::outcome::Rejected;
    use crate::validation::{Commit, Layout, Search, check};

    fn id(digit: u8) -> CommitId {
        char::from(digit).to_string().repeat(40).parse().unwrap()
    }

    fn built(digit: u8, bytes: u64, base: Option<u8>) -> Built {
        let meter = Arc::new(Meter::new(Budget::DEFAULT));
        let (layout, schemas) = (Layout::default(), Arc::default());
        let commit = Commit { layout: &layout, readings: &[], schemas: &schemas, read: &|_| None };
        let checked = check(&commit, Search::Decisive, &meter, &|_| {});
        let rejected = Rejected { commit: id(digit), diagnostics: Vec::new() };
        Built {
            outcome: Outcome::Rejected(Arc::new(rejected)),
            checked: Arc::new(checked),
            bytes,
            base: base.map(id),
            is_unpushed: false,
        }
    }

    fn kept(cache: &SnapshotCache) -> Vec<(CommitId, u64)> {
        cache.0.iter().map(|(commit, it)| (*commit, it.bytes)).collect()
    }

    #[test]
    fn those_used_last_are_kept_with_the_live_one() {
        let mut cache = SnapshotCache::default();
        for digit in b'1'..=b'5' {
            cache.insert(id(digit), built(digit, 40, None), Some(id(b'1')), 100);
            cache.get(id(b'2'));
        }
        assert_eq!(kept(&cache), [(id(b'1'), 40), (id(b'4'), 40), (id(b'5'), 40), (id(b'2'), 40)]);
    }

    #[test]
    fn what_is_shared_with_an_evicted_commit_still_counts() {
        let mut cache = SnapshotCache::default();
        cache.insert(id(b'1'), built(b'1', 60, None), None, 100);
        cache.insert(id(b'2'), built(b'2', 1, Some(b'1')), None, 100);
        cache.insert(id(b'3'), built(b'3', 1, Some(b'1')), None, 100);
        cache.insert(id(b'4'), built(b'4', 60, None), None, 100);
        cache.insert(id(b'5'), built(b'5', 1, Some(b'4')), None, 100);
        // The second and third hold the memory of the first: only without them it is free.
        assert_eq!(kept(&cache), [(id(b'4'), 60), (id(b'5'), 1)]);
    }
}
