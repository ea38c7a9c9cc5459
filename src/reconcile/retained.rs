//! The commits that are kept built.

use indexmap::IndexMap;

use super::build::{Built, Outcome};
use crate::model::CommitId;

/// How many commits are kept built; they share the files that they have in common.
const KEPT: usize = 256;

/// What came of the commits used last, the latest at the end.
#[derive(Debug, Default)]
pub(super) struct Retained(IndexMap<CommitId, Built>);

impl Retained {
    /// Returns what came of a commit, which is then the latest used.
    pub(super) fn get(&mut self, commit: CommitId) -> Option<Outcome> {
        let index = self.0.get_index_of(&commit)?;
        self.0.move_index(index, self.0.len() - 1);
        self.0.get(&commit).map(|it| it.outcome.clone())
    }

    /// Returns what a commit may be built from: the first of some commits that is kept and valid, or
    /// the latest used.
    pub(super) fn base(&self, wanted: impl IntoIterator<Item = CommitId>) -> Option<Built> {
        let is_valid = |it: &&Built| matches!(it.outcome, Outcome::Valid(_));
        let mut near = wanted.into_iter().filter_map(|it| self.0.get(&it)).filter(is_valid);
        near.next().or_else(|| self.0.values().rev().find(is_valid)).cloned()
    }

    pub(super) fn insert(&mut self, commit: CommitId, built: Built) {
        self.0.shift_remove(&commit);
        self.0.insert(commit, built);
        while self.0.len() > KEPT {
            self.0.shift_remove_index(0);
        }
    }

    /// Returns the commits.
    pub(super) fn all(&self) -> Vec<(CommitId, Outcome)> {
        self.0.iter().map(|(commit, it)| (*commit, it.outcome.clone())).collect()
    }
}
