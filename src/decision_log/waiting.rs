//! What the queue of decisions may hold.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::decision::Decision;
use crate::snapshot::Snapshot;

/// How many bytes of facts wait.
const BYTES: usize = 16 << 20;

/// How many snapshots decisions hold that wait: each keeps all groups of a commit in memory.
const SNAPSHOTS: usize = 64;

/// What decisions hold that wait to be written.
#[derive(Debug, Default)]
pub(super) struct WaitingDecisions(Mutex<HeldTotals>);

#[derive(Debug, Default)]
struct HeldTotals {
    bytes: usize,
    /// How many decisions hold each snapshot, by its address.
    snapshots: HashMap<usize, usize>,
    /// How many lines are being written.
    writing: usize,
}

impl WaitingDecisions {
    /// Counts a decision that is to wait; returns whether there is room for it.
    pub(super) fn admit(&self, decision: &Decision) -> bool {
        let mut waiting = self.0.lock();
        let bytes = waiting.bytes.saturating_add(decision.size());
        let snapshot = address(&decision.snapshot);
        let is_held = waiting.snapshots.contains_key(&snapshot);
        if bytes > BYTES || (!is_held && waiting.snapshots.len() >= SNAPSHOTS) {
            return false;
        }
        waiting.bytes = bytes;
        *waiting.snapshots.entry(snapshot).or_default() += 1;
        true
    }

    /// Counts a decision no longer.
    pub(super) fn release(&self, decision: &Decision) {
        let mut waiting = self.0.lock();
        waiting.bytes = waiting.bytes.saturating_sub(decision.size());
        let snapshot = address(&decision.snapshot);
        if let Some(holders) = waiting.snapshots.get_mut(&snapshot) {
            *holders -= 1;
            if *holders == 0 {
                waiting.snapshots.remove(&snapshot);
            }
        }
    }

    /// Notes how many lines are being written.
    pub(super) fn set_writing(&self, lines: usize) {
        self.0.lock().writing = lines;
    }

    /// Returns how many decisions wait or are being written.
    pub(super) fn count(&self) -> usize {
        let waiting = self.0.lock();
        waiting.snapshots.values().sum::<usize>() + waiting.writing
    }
}

/// Returns the address of a snapshot; a commit may be built several times.
fn address(snapshot: &Arc<Snapshot>) -> usize {
    Arc::as_ptr(snapshot).addr()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::super::input::DecisionInput;
    use super::*;
    use crate::hierarchy::{Estate, Hierarchy, root_group};
    use crate::model::{CommitId, Interpolation, Node};

    fn snapshot() -> Arc<Snapshot> {
        let estate = Estate {
            hierarchy: Hierarchy::build(vec![root_group().unwrap()]).unwrap(),
            individuals: Arc::default(),
            environments: Arc::default(),
            catalogues: Arc::default(),
            interpolation: Interpolation::Off,
        };
        let commit = CommitId::from_bytes([1; 20]);
        Arc::new(Snapshot::new(commit, estate, Arc::default(), Vec::new()))
    }

    fn decision(snapshot: &Arc<Snapshot>, bytes: usize) -> Decision {
        let mut node = Node::named("n");
        node.fact.insert("text".to_owned(), "x".repeat(bytes).into());
        Decision {
            time: Timestamp::UNIX_EPOCH,
            path: String::new(),
            requested_by: None,
            request_id: None,
            name: "n".to_owned(),
            snapshot: Arc::clone(snapshot),
            input: DecisionInput::Restricted(node),
            groups: Ok(Vec::new()),
            took: Duration::ZERO,
        }
    }

    #[test]
    fn what_waits_has_a_limit_of_bytes_and_of_snapshots_and_frees_its_room() {
        let waiting = WaitingDecisions::default();
        let snapshots: Vec<Arc<Snapshot>> = (0..=SNAPSHOTS).map(|_| snapshot()).collect();
        let (last, most) = snapshots.split_last().unwrap();
        let admits = |snapshot, bytes| waiting.admit(&decision(snapshot, bytes));
        assert!(most.iter().all(|it| admits(it, 1)));
        assert!(!admits(last, 1), "another snapshot");
        assert!(admits(&most[0], 1), "one that is held anyhow");
        assert!(!admits(&most[0], BYTES));
        assert!(admits(&most[0], BYTES / 2) && !admits(&most[0], BYTES / 2));
        waiting.release(&decision(&most[0], BYTES / 2));
        waiting.release(&decision(&most[0], 1));
        assert!(!admits(last, 1), "the first is still held once");
        assert_eq!(waiting.count(), SNAPSHOTS);
        waiting.release(&decision(&most[0], 1));
        assert!(admits(last, BYTES / 2));
    }
}
