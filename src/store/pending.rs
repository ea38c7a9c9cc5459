//! The check-ins that wait for the writer.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::check_in::QueuedRow;
use super::queue::{CheckInQueue, Fresh, Keeping, Receipt, Urgency};

/// How many KiB may wait to be written.
const ROOM: usize = 32 << 10;

/// From how many free KiB on no more is collected before the next write.
const SCARCE: usize = ROOM / 2;

/// How long the store is not opened again after that failed, or after it was opened because reading failed.
pub(super) const BETWEEN_OPENINGS: Duration = Duration::from_millis(500);

/// A queue of bounded size between the requests that add to it and the thread that writes.
#[derive(Debug)]
pub(super) struct Pending {
    room: Arc<Semaphore>,
    queue: Mutex<CheckInQueue>,
    changed: Condvar,
    /// How long check-ins are collected before they are written together, unless room becomes scarce.
    collect: Duration,
}

impl Pending {
    /// Makes an empty queue.
    pub(super) fn new(collect: Duration) -> Self {
        let room = Arc::new(Semaphore::new(ROOM));
        Self { room, queue: Mutex::default(), changed: Condvar::new(), collect }
    }

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
        // What facts say of values is read before others have to wait for the queue.
        if fresh.row.answered().is_some_and(|it| !it.is_decided_for(name)) {
            let waiting = self.queue().last(name);
            if let Some(waiting) = waiting {
                waiting.mentioned(name);
                fresh.row.mentioned(name);
            }
        }
        let mut queue = self.queue();
        // The writer sleeps until there is something, and then waits for more: waking it each time
        // would cost more than all the rest.
        let wakes = queue.is_empty() || receipt.is_some() || self.is_scarce();
        let commit = fresh.row.answered().map(|it| it.snapshot.commit);
        let outdated = commit.map(|it| queue.note_commit(it)).unwrap_or_default();
        let displaced = queue.put(name, fresh, room, receipt);
        drop(queue);
        // Giving back so much memory takes time in which others can go on.
        let lost = displaced.lost;
        drop(displaced);
        if wakes {
            self.changed.notify_one();
        }
        outdated.len() + lost
    }

    /// Makes the writer open the store, though no check-in waits, or it waits to try again.
    pub(super) fn wake_writer(&self) {
        let mut queue = self.queue();
        queue.urgency = Urgency::AtOnce;
        queue.is_woken = true;
        drop(queue);
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
            let more = |it: &mut CheckInQueue| {
                !it.stopping && it.urgency == Urgency::CanWait && !self.is_scarce()
            };
            self.changed.wait_while_for(queue, more, self.collect);
        }
    }

    /// Returns whether room is scarce.
    fn is_scarce(&self) -> bool {
        self.room.available_permits() < SCARCE
    }

    /// Waits for so long, or until the store is to be opened, or for the end; where opening it helps nothing, each request
    /// that fails has it opened again, so it waits for a while in any case.
    pub(super) fn pause(&self, queue: &mut MutexGuard<'_, CheckInQueue>, longest: Duration) {
        self.changed.wait_while_for(queue, |it| !it.stopping, longest.min(BETWEEN_OPENINGS));
        let rest = longest.saturating_sub(BETWEEN_OPENINGS);
        self.changed.wait_while_for(queue, |it| !it.stopping && !it.is_woken, rest);
        queue.is_woken = false;
    }

    /// Waits, or for the end, where the store is to be opened again so soon after it was.
    pub(super) fn space_openings(&self, queue: &mut MutexGuard<'_, CheckInQueue>, since: Duration) {
        let rest = BETWEEN_OPENINGS.saturating_sub(since);
        self.changed.wait_while_for(queue, |it| !it.stopping, rest);
        queue.is_woken = false;
    }
}

fn kibibytes(bytes: usize) -> u32 {
    u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::store::check_in::Row;
    use crate::store::{CheckIn, Noted};

    fn row(bytes: usize) -> QueuedRow {
        let mut node = crate::model::Node::named("n");
        node.fact.insert("x".to_owned(), "y".repeat(bytes).into());
        let time = jiff::Timestamp::UNIX_EPOCH;
        let check_in = CheckIn { time, transaction_uuid: None, commit: None, node };
        Row::of(&Noted::from(&check_in)).unwrap().into()
    }

    /// How many bytes each check-in has.
    const PART: usize = 1 << 20;

    #[test]
    fn a_store_that_was_closed_is_opened_again_though_the_writer_waits_to_try_again() {
        let pending = Arc::new(Pending::new(Duration::MAX));
        let (paused, done) = mpsc::channel();
        let writer = Arc::clone(&pending);
        std::thread::spawn(move || {
            for _ in 0..2 {
                writer.pause(&mut writer.queue(), Duration::MAX);
                paused.send(()).ok();
            }
        });
        pending.wake_writer();
        done.recv_timeout(Duration::from_mins(1)).unwrap();
        assert!(done.recv_timeout(Duration::from_millis(50)).is_err(), "each wakes it once");
        pending.stop();
        done.recv_timeout(Duration::from_mins(1)).unwrap();
    }

    #[test]
    fn a_store_that_cannot_be_read_is_not_opened_all_the_time() {
        let pending = Pending::new(Duration::MAX);
        for (wait, least) in [
            (&|queue: &mut _| pending.pause(queue, Duration::from_mins(1)) as (), BETWEEN_OPENINGS),
            (&|queue: &mut _| pending.space_openings(queue, Duration::ZERO), BETWEEN_OPENINGS),
            (&|queue: &mut _| pending.space_openings(queue, BETWEEN_OPENINGS), Duration::ZERO),
        ]
            as [(&dyn Fn(&mut MutexGuard<'_, CheckInQueue>), Duration); 3]
        {
            pending.wake_writer();
            #[expect(clippy::disallowed_methods, reason = "a wait is measured")]
            let began = std::time::Instant::now();
            wait(&mut pending.queue());
            let waited = began.elapsed();
            assert!(waited >= least && waited < Duration::from_secs(30), "{waited:?}");
            assert!(!pending.queue().is_woken);
        }
    }

    #[test]
    fn no_more_is_collected_when_room_becomes_scarce() {
        let pending = Arc::new(Pending::new(Duration::MAX));
        let (collected, done) = mpsc::channel();
        let writer = Arc::clone(&pending);
        // Not joined: a writer that collects for ever is a failure.
        std::thread::spawn(move || {
            let mut queue = writer.queue();
            writer.wait_for_work(&mut queue, Duration::MAX);
            collected.send(()).ok();
        });
        let parts = SCARCE * 1024 / PART;
        for number in 0..parts {
            assert!(done.try_recv().is_err(), "{number} of {parts}");
            let room = pending.try_room(PART).unwrap();
            pending.put(&number.to_string(), row(PART), room, None);
            std::thread::sleep(Duration::from_millis(1));
        }
        done.recv_timeout(Duration::from_mins(1)).unwrap();
    }
}
