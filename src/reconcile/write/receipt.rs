//! Whether clients have the answers to their writes.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::model::CommitId;

/// The answers that are on their way.
pub(super) struct Deliveries {
    /// The commits whose clients are being answered: they count as answered until that fails.
    commits: Mutex<HashSet<CommitId>>,
    /// Called with the commit of each answer that was sent.
    on_sent: Box<dyn Fn(CommitId) + Send + Sync>,
}

impl fmt::Debug for Deliveries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deliveries").field("commits", &self.commits).finish_non_exhaustive()
    }
}

impl Deliveries {
    pub(super) fn new(on_sent: impl Fn(CommitId) + Send + Sync + 'static) -> Self {
        Self { commits: Mutex::default(), on_sent: Box::new(on_sent) }
    }

    /// Returns whether the client of a commit is being answered.
    pub(super) fn contains(&self, commit: CommitId) -> bool {
        self.commits.lock().contains(&commit)
    }

    /// Forgets commits, since the journal has it that their clients have their answers.
    pub(super) fn forget(&self, commits: &[CommitId]) {
        let mut kept = self.commits.lock();
        for commit in commits {
            kept.remove(commit);
        }
    }
}

/// An answer on its way to a client. The commit counts as unanswered again if this is dropped before
/// [`DeliveryReceipt::note_sent`]; only what was sent is noted for the time after a restart.
#[derive(Debug)]
pub struct DeliveryReceipt {
    commit: CommitId,
    deliveries: Arc<Deliveries>,
    is_sent: AtomicBool,
}

impl DeliveryReceipt {
    pub(super) fn new(commit: CommitId, deliveries: &Arc<Deliveries>) -> Self {
        deliveries.commits.lock().insert(commit);
        Self { commit, deliveries: Arc::clone(deliveries), is_sent: AtomicBool::new(false) }
    }

    /// Notes that the answer has left this process.
    pub fn note_sent(&self) {
        (self.deliveries.on_sent)(self.commit);
        self.is_sent.store(true, Ordering::Relaxed);
    }
}

impl Drop for DeliveryReceipt {
    fn drop(&mut self) {
        if !*self.is_sent.get_mut() {
            self.deliveries.commits.lock().remove(&self.commit);
        }
    }
}
