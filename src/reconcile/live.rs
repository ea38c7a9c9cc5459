//! The snapshots that answer agents.

use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, Guard};

use crate::model::CommitId;
use crate::snapshot::{LiveSnapshot, Snapshot};

/// The snapshot that answers a request. Requests do not count its users, since all threads share such a count.
pub type LiveGuard = Guard<Arc<LiveSnapshot>>;

/// The snapshots that answer. There is one; a rollout in stages will have a candidate beside it.
#[derive(Debug, Default)]
pub(super) struct LiveSnapshots {
    /// None before the first.
    stable: OnceLock<ArcSwap<LiveSnapshot>>,
}

impl LiveSnapshots {
    /// Returns the snapshot that answers all nodes.
    pub(super) fn stable(&self) -> Option<LiveGuard> {
        self.stable.get().map(ArcSwap::load)
    }

    /// Returns its commit.
    pub(super) fn commit(&self) -> Option<CommitId> {
        self.stable().map(|it| it.snapshot().commit)
    }

    /// Makes a snapshot answer; requests that run end with the one before.
    pub(super) fn set_stable(&self, snapshot: Arc<Snapshot>) {
        // A pin of the live commit keeps its responses.
        if self.stable().is_some_and(|it| Arc::ptr_eq(it.snapshot(), &snapshot)) {
            return;
        }
        let live = Arc::new(LiveSnapshot::new(snapshot));
        self.stable.get_or_init(|| ArcSwap::new(Arc::clone(&live))).store(live);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::{Estate, Hierarchy, root_group};

    fn snapshot(digit: u8) -> Arc<Snapshot> {
        let hierarchy = Hierarchy::build(root_group().into_iter().collect()).unwrap();
        let estate = Estate {
            hierarchy,
            individuals: Arc::default(),
            environments: Arc::default(),
            catalogues: Arc::default(),
            interpolation: crate::model::Interpolation::Off,
        };
        let commit = CommitId::from_bytes([digit; 20]);
        Arc::new(Snapshot::new(commit, estate, Arc::default(), Vec::new()))
    }

    #[test]
    fn the_same_snapshot_keeps_its_responses_and_another_begins_without() {
        let live = LiveSnapshots::default();
        assert_eq!(live.commit(), None);
        let first = snapshot(1);
        live.set_stable(Arc::clone(&first));
        let before = live.stable().unwrap();
        live.set_stable(first);
        assert!(Arc::ptr_eq(&before, &live.stable().unwrap()));
        live.set_stable(snapshot(2));
        assert_eq!(live.commit(), Some(CommitId::from_bytes([2; 20])));
        assert_eq!(before.snapshot().commit, CommitId::from_bytes([1; 20]), "requests end with it");
    }
}
