//! The check-ins that wait for the writer.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::check_in::QueuedRow;
use super::queue::{CheckInQueue, Fresh, Keeping, Receipt, Urgency};

/// How long check-ins are collected before they are written together.
const COLLECT: Duration = Duration::from_millis(200);

/// How many KiB may wait to be written.
const ROOM: usize = 32 << 10;

/// A queue of bounded size between the requests that add to it and the thread that writes.
#[derive(Debug)]
pub(super) struct Pending {
    room: Arc<Semaphore>,
    queue: Mutex<CheckInQueue>,
    changed: Condvar,
}

impl Default for Pending {
    fn default() -> Self {
        let room = Arc::new(Semaphore::new(ROOM));
        Self { room, queue: Mutex::default(), changed: Condvar::new() }
    }
}

impl Pending {
    /// Locks the queue.
    pub(super) fn queue(&self) -> MutexGuard<'_, CheckInQueue> {
        self.queue.lock()
    }

    /// Returns room for so many bytes, if there is enough now.
    pub(super) fn try_room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).try_acquire_many_owned(kibibytes(bytes)).ok()
    }

    /// Waits for room for so many bytes.
    pub(super) async fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).acquire_many_owned(kibibytes(bytes)).await.ok()
    }

    /// Adds a check-in, and wakes the writer if it waits for one. Returns how many others had to go.
    pub(super) fn put(
        &self,
        name: &str,
        row: QueuedRow,
        room: OwnedSemaphorePermit,
        receipt: Option<Receipt>,
    ) -> usize {
        let keeping = if receipt.is_some() { Keeping::Promised } else { Keeping::Noted };
        let fresh = Fresh::new(row, keeping);
        let mut queue = self.queue();
        // The writer sleeps until there is something, and then waits for more: waking it each time
        // would cost more than all the rest.
        let wakes = queue.is_empty() || receipt.is_some();
        let commit = fresh.row.answered().map(|it| it.snapshot.commit);
        let outdated = commit.map(|it| queue.note_commit(it)).unwrap_or_default();
        let before = queue.put(name, fresh, room, receipt);
        drop(queue);
        // Giving back so much memory takes time in which others can go on.
        drop(before);
        if wakes {
            self.changed.notify_one();
        }
        outdated.len()
    }

    /// Makes the writer open the store, though no check-in waits.
    pub(super) fn wake_writer(&self) {
        self.queue().urgency = Urgency::AtOnce;
        self.changed.notify_one();
    }

    /// Makes the writer end when what waits is written.
    pub(super) fn stop(&self) {
        self.queue().stopping = true;
        self.changed.notify_all();
    }

    /// Waits until there are check-ins to write together, or for so long.
    pub(super) fn wait_for_work(
        &self,
        queue: &mut MutexGuard<'_, CheckInQueue>,
        longest: Duration,
    ) {
        let idle =
            |it: &mut CheckInQueue| it.is_empty() && !it.stopping && it.urgency == Urgency::CanWait;
        if !self.changed.wait_while_for(queue, idle, longest).timed_out() {
            let more = |it: &mut CheckInQueue| !it.stopping && it.urgency == Urgency::CanWait;
            self.changed.wait_while_for(queue, more, COLLECT);
        }
    }

    /// Waits for so long, or for the end.
    pub(super) fn pause(&self, queue: &mut MutexGuard<'_, CheckInQueue>, longest: Duration) {
        self.changed.wait_while_for(queue, |it| !it.stopping, longest);
    }
}

fn kibibytes(bytes: usize) -> u32 {
    u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX)
}
