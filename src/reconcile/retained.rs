//! The commits that are kept built.

use indexmap::IndexMap;

use super::build::{Outcome, Readings};
use crate::model::CommitId;

/// How many commits are kept built; they share the files that they have in common.
const KEPT: usize = 256;

/// What came of the commits used last, the latest at the end.
#[derive(Debug, Default)]
pub(super) struct Retained(IndexMap<CommitId, (Outcome, Readings)>);

impl Retained {
    /// Returns what came of a commit, which is then the latest used.
    pub(super) fn get(&mut self, commit: CommitId) -> Option<Outcome> {
        let index = self.0.get_index_of(&commit)?;
        self.0.move_index(index, self.0.len() - 1);
        self.0.get(&commit).map(|(outcome, _)| outcome.clone())
    }

    pub(super) fn insert(&mut self, commit: CommitId, outcome: Outcome, readings: Readings) {
        self.0.shift_remove(&commit);
        self.0.insert(commit, (outcome, readings));
        while self.0.len() > KEPT {
            self.0.shift_remove_index(0);
        }
    }

    /// Returns the commits.
    pub(super) fn all(&self) -> Vec<(CommitId, Outcome)> {
        self.0.iter().map(|(commit, (outcome, _))| (*commit, outcome.clone())).collect()
    }
}
