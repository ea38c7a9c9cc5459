//! The clocks, read at the edge of the reconcile loop: its state is handed the time.
#![expect(clippy::disallowed_methods, reason = "the one place of the loop that reads the clocks")]

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// What the clocks show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// The time of day, which an operator may set.
    pub(super) wall: Timestamp,
    /// The monotonic clock.
    pub(super) monotonic: Instant,
}

impl Now {
    /// Reads the clocks.
    pub(super) fn read() -> Self {
        Self { wall: Timestamp::now(), monotonic: Instant::now() }
    }

    /// Returns how long ago something was.
    pub(super) fn since(self, then: Instant) -> Duration {
        self.monotonic.saturating_duration_since(then)
    }
}
