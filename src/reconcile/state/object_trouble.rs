//! What is wrong with the objects of the repository on disk.

use std::collections::BTreeSet;

use crate::reconcile::status::Reason;

/// For how much damage everything is fetched again until a commit is live: objects of the remote may be damaged as well.
const MOST_FETCHES: usize = 16;

/// What is wrong with the objects of the repository on disk.
#[derive(Debug, Default)]
pub(super) struct ObjectTrouble {
    /// Why some cannot be read; they are to be fetched again.
    damage: Option<String>,
    /// What was wrong whenever everything was fetched again, since a commit was live.
    fetched_again_for: BTreeSet<String>,
    /// Why new ones cannot be written.
    unwritten: Option<(Reason, String)>,
}

impl ObjectTrouble {
    pub(super) fn damage(&self) -> Option<&String> {
        self.damage.as_ref()
    }

    /// Notes damage, unless everything was fetched again for the same.
    pub(super) fn note_damage(&mut self, message: String) {
        let may_help = self.fetched_again_for.len() < MOST_FETCHES;
        if may_help && !self.fetched_again_for.contains(&message) {
            self.damage = Some(message);
        }
    }

    pub(super) fn fetched_again(&mut self) {
        self.fetched_again_for.extend(self.damage.take());
    }

    pub(super) fn forget_damage(&mut self) {
        self.damage = None;
    }

    /// A commit is live: what is found damaged from now on is new damage.
    pub(super) fn settle(&mut self) {
        self.fetched_again_for.clear();
    }

    pub(super) fn unwritten(&self) -> Option<&(Reason, String)> {
        self.unwritten.as_ref()
    }

    pub(super) fn note_unwritten(&mut self, why: Option<(Reason, String)>) {
        self.unwritten = why;
    }
}
