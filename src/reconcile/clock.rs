//! The clocks, read at the edge of the reconcile loop: it passes the time to its state.
#![expect(clippy::disallowed_methods, reason = "the one place of the loop that reads the clocks")]

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// What the clocks show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// The time of day, which an operator may set.
    pub(super) wall: Timestamp,
    /// The monotonic clock.
    pub(super) monotonic: Instant,
}

impl Now {
    /// Reads the clocks at the same moment: a thread that is preempted between them for long reads
    /// them again, since the journal would take the difference for a clock that was set.
    pub(super) fn read() -> Self {
        /// How far two readings of one moment may be apart.
        const SAME_MOMENT: Duration = Duration::from_millis(100);
        #[cfg(test)]
        if let Some(now) = SIMULATED.get() {
            return now;
        }
        loop {
            let before = Instant::now();
            let wall = Timestamp::now();
            let monotonic = Instant::now();
            if monotonic.saturating_duration_since(before) < SAME_MOMENT {
                return Self { wall, monotonic };
            }
        }
    }

    /// Returns the clocks a while later.
    #[cfg(test)]
    pub(super) fn later(self, passed: Duration) -> Self {
        Self { wall: self.wall + passed, monotonic: self.monotonic + passed }
    }

    /// Returns what the time of day was a while ago, by a clock that was not set since.
    pub(super) fn ago(self, passed: Duration) -> Timestamp {
        SignedDuration::try_from(passed)
            .ok()
            .and_then(|passed| self.wall.checked_sub(passed).ok())
            .unwrap_or(Timestamp::MIN)
    }

    /// Returns how long ago something was.
    pub(super) fn since(self, then: Instant) -> Duration {
        self.monotonic.saturating_duration_since(then)
    }
}

#[cfg(test)]
thread_local! {
    static SIMULATED: std::cell::Cell<Option<Now>> = const { std::cell::Cell::new(None) };
}

/// Has this thread read a time from now on, until the guard is dropped.
#[cfg(test)]
pub(super) fn simulate(now: Now) -> impl Drop {
    struct Real;
    impl Drop for Real {
        fn drop(&mut self) {
            SIMULATED.set(None);
        }
    }
    SIMULATED.set(Some(now));
    Real
}
