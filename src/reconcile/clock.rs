//! The clocks, read at the edge of the reconcile loop: it passes the time to its state.
#![expect(clippy::disallowed_methods, reason = "the one place of the loop that reads the clocks")]

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::boot_time::BootTime;

/// What the clocks show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// The time of day, which an operator may set.
    pub(super) wall: Timestamp,
    /// The clock of waits and deadlines, which nothing sets. It may stop while the machine is suspended.
    pub(super) monotonic: Instant,
    /// The clock of ages.
    pub(super) boot: BootTime,
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
            let before = BootTime::now();
            let (wall, monotonic, boot) = (Timestamp::now(), Instant::now(), BootTime::now());
            if boot.since(before) < SAME_MOMENT {
                return Self { wall, monotonic, boot };
            }
        }
    }

    /// Returns the clocks a while later.
    #[cfg(test)]
    pub(super) fn later(self, passed: Duration) -> Self {
        Self { monotonic: self.monotonic + passed, ..self.after_suspend(passed) }
    }

    /// Returns the clocks after the machine was suspended for a while.
    #[cfg(test)]
    pub(super) fn after_suspend(self, passed: Duration) -> Self {
        Self { wall: self.wall + passed, boot: self.boot + passed, ..self }
    }

    /// Returns what the time of day was a while ago, by a clock that was not set since.
    pub(super) fn ago(self, passed: Duration) -> Timestamp {
        SignedDuration::try_from(passed)
            .ok()
            .and_then(|passed| self.wall.checked_sub(passed).ok())
            .unwrap_or(Timestamp::MIN)
    }

    /// Returns how long ago something was, with the time for which the machine was suspended since.
    pub(super) fn age_of(self, then: BootTime) -> Duration {
        self.boot.since(then)
    }

    /// Returns how long ago something was, by the clock of waits.
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
