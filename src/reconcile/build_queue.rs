//! The queue of builds: one at a time, those that decide what is live before those that are only read.
#![expect(clippy::disallowed_methods, reason = "waiting ends by the clock")]

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// The most readers that wait for a build; each holds a thread.
const READERS: usize = 16;

/// How long a reader waits.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What a build is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// It decides what is live next: the builder, a pin, a write.
    Decides,
    /// A client reads another commit.
    Reads,
    /// A forge gets its outcome as a commit status.
    Reports,
}

/// Grants slots.
#[derive(Debug, Default)]
pub(super) struct BuildQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_taken: bool,
    deciding: usize,
    reading: usize,
}

/// The right to build; the next build begins when it is dropped.
#[derive(Debug)]
pub(super) struct BuildSlot<'t>(&'t BuildQueue);

impl BuildQueue {
    /// Waits for a slot; none if too many readers wait, or one waited too long. Blocking.
    pub(super) fn take(&self, priority: Priority) -> Option<BuildSlot<'_>> {
        let deadline = Instant::now() + TIMEOUT;
        let mut state = self.state.lock();
        match priority {
            Priority::Decides => state.deciding += 1,
            Priority::Reads if state.reading >= READERS => return None,
            Priority::Reads => state.reading += 1,
            Priority::Reports => {}
        }
        let taken = loop {
            if !state.is_taken && (priority == Priority::Decides || state.deciding == 0) {
                state.is_taken = true;
                #[cfg(test)]
                SLOTS_HERE.set(SLOTS_HERE.get() + 1);
                break Some(BuildSlot(self));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if priority == Priority::Reads && left.is_zero() {
                break None;
            }
            let left = if priority == Priority::Reads { left } else { TIMEOUT };
            self.changed.wait_for(&mut state, left);
        };
        match priority {
            Priority::Decides => state.deciding -= 1,
            Priority::Reads => state.reading -= 1,
            Priority::Reports => {}
        }
        taken
    }

    /// A queue in which too many readers wait for another one.
    #[cfg(test)]
    pub(super) fn full() -> Self {
        let state = State { is_taken: true, deciding: 0, reading: READERS };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Returns whether a build waits that decides what is live next.
    pub(super) fn is_awaited(&self) -> bool {
        self.state.lock().deciding > 0
    }
}

#[cfg(test)]
thread_local! {
    static SLOTS_HERE: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
impl BuildSlot<'_> {
    /// Returns whether this thread has the right to build.
    pub(super) fn is_held_here() -> bool {
        SLOTS_HERE.get() > 0
    }
}

impl Drop for BuildSlot<'_> {
    fn drop(&mut self) {
        #[cfg(test)]
        SLOTS_HERE.set(SLOTS_HERE.get() - 1);
        self.0.state.lock().is_taken = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_goes_before_what_reads() {
        let queue = BuildQueue::default();
        let order = Mutex::new(Vec::new());
        let first = queue.take(Priority::Reads).unwrap();
        std::thread::scope(|scope| {
            let wait = |priority, done: fn(&State) -> bool| {
                let (queue, order) = (&queue, &order);
                scope.spawn(move || {
                    let _slot = queue.take(priority).unwrap();
                    order.lock().push(priority);
                });
                while !done(&queue.state.lock()) {
                    std::thread::yield_now();
                }
            };
            for _ in 0..READERS {
                wait(Priority::Reads, |it| it.reading > 0);
            }
            while queue.state.lock().reading < READERS {
                std::thread::yield_now();
            }
            assert!(queue.take(Priority::Reads).is_none(), "the queue has an end");
            wait(Priority::Decides, |it| it.deciding == 1);
            assert!(queue.is_awaited());
            drop(first);
        });
        let order = order.into_inner();
        assert_eq!((order.first(), order.len()), (Some(&Priority::Decides), READERS + 1));
    }
}
