//! Whose turn it is to build a commit: one build at a time, what decides before what is only read.
#![expect(clippy::disallowed_methods, reason = "waiting ends by the clock")]

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many readers wait for a build at most; each holds a thread.
const READERS: usize = 16;

/// How long a reader waits.
const PATIENCE: Duration = Duration::from_secs(30);

/// Who asks for a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// What answers next depends on it: the builder, a pin, a write.
    Decides,
    /// A client reads another commit.
    Reads,
    /// A forge is told later what came of it.
    Reports,
}

/// Grants turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_taken: bool,
    deciding: usize,
    reading: usize,
}

/// A turn; the next one begins when it is dropped.
#[derive(Debug)]
pub(super) struct Turn<'t>(&'t Turns);

impl Turns {
    /// Waits for a turn; none if too many readers wait, or one waited too long. Blocking.
    pub(super) fn take(&self, urgency: Urgency) -> Option<Turn<'_>> {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.state();
        match urgency {
            Urgency::Decides => state.deciding += 1,
            Urgency::Reads if state.reading >= READERS => return None,
            Urgency::Reads => state.reading += 1,
            Urgency::Reports => {}
        }
        let taken = loop {
            if !state.is_taken && (urgency == Urgency::Decides || state.deciding == 0) {
                state.is_taken = true;
                break Some(Turn(self));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if urgency == Urgency::Reads && left.is_zero() {
                break None;
            }
            let left = if urgency == Urgency::Reads { left } else { PATIENCE };
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        match urgency {
            Urgency::Decides => state.deciding -= 1,
            Urgency::Reads => state.reading -= 1,
            Urgency::Reports => {}
        }
        taken
    }

    /// Returns whether something waits that decides what answers next.
    pub(super) fn is_awaited(&self) -> bool {
        self.state().deciding > 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state().is_taken = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_goes_before_what_reads() {
        let turns = Turns::default();
        let order = Mutex::new(Vec::new());
        let first = turns.take(Urgency::Reads).unwrap();
        std::thread::scope(|scope| {
            let wait = |urgency, done: fn(&State) -> bool| {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let _turn = turns.take(urgency).unwrap();
                    order.lock().unwrap().push(urgency);
                });
                while !done(&turns.state()) {
                    std::thread::yield_now();
                }
            };
            for _ in 0..READERS {
                wait(Urgency::Reads, |it| it.reading > 0);
            }
            while turns.state().reading < READERS {
                std::thread::yield_now();
            }
            assert!(turns.take(Urgency::Reads).is_none(), "the queue has an end");
            wait(Urgency::Decides, |it| it.deciding == 1);
            assert!(turns.is_awaited());
            drop(first);
        });
        let order = order.into_inner().unwrap();
        assert_eq!((order.first(), order.len()), (Some(&Urgency::Decides), READERS + 1));
    }
}
