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
pub(super) struct WaitingDecisions(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    bytes: usize,
    /// How many decisions hold each snapshot, by its address.
    snapshots: HashMap<usize, usize>,
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

    /// Returns how many decisions wait.
    pub(super) fn count(&self) -> usize {
        self.0.lock().snapshots.values().sum()
    }
}

/// Returns the address of a snapshot; a commit may be built several times.
fn address(snapshot: &Arc<Snapshot>) -> usize {
    Arc::as_ptr(snapshot).addr()
}
