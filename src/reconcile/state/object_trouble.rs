//! What is wrong with the objects of the repository on disk.

use std::time::{Duration, Instant};

use crate::reconcile::schedule;
use crate::reconcile::status::Reason;

/// What is wrong with the objects of the repository on disk.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectTrouble {
    /// Why some cannot be read; they are to be fetched again.
    damage: Option<String>,
    /// How often everything was fetched again, or could not be, since a commit was live.
    refetches: u32,
    /// Before this, everything is not fetched again: objects of the remote may be damaged as well.
    next_refetch: Option<Instant>,
    /// Why new ones cannot be written.
    unwritten: Option<(Reason, String)>,
}

impl ObjectTrouble {
    pub(super) fn damage(&self) -> Option<&String> {
        self.damage.as_ref()
    }

    pub(super) fn note_damage(&mut self, message: String) {
        self.damage = Some(message);
    }

    /// Returns how long to wait until everything may be fetched again.
    pub(super) fn until_refetch(&self, now: Instant) -> Duration {
        self.next_refetch.map_or(Duration::ZERO, |it| it.saturating_duration_since(now))
    }

    /// Everything begins to be fetched again.
    pub(super) fn refetch_began(&mut self, now: Instant) {
        self.refetches = self.refetches.saturating_add(1);
        self.wait_for_next(now);
    }

    /// That ended: it may have taken long.
    pub(super) fn refetch_ended(&mut self, now: Instant) {
        self.wait_for_next(now);
    }

    fn wait_for_next(&mut self, now: Instant) {
        self.next_refetch = Some(now + schedule::backoff(self.refetches));
    }

    pub(super) fn forget_damage(&mut self) {
        self.damage = None;
    }

    /// A commit is live: what is found damaged from now on is new damage.
    pub(super) fn settle(&mut self) {
        self.refetches = 0;
        self.next_refetch = None;
    }

    pub(super) fn unwritten(&self) -> Option<&(Reason, String)> {
        self.unwritten.as_ref()
    }

    pub(super) fn note_unwritten(&mut self, why: Option<(Reason, String)>) {
        self.unwritten = why;
    }
}
