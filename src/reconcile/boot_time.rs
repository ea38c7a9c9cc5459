//! Times by a clock that goes on while the machine is suspended.

use std::ops::Add;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The clock: `Instant` has one that Linux stops while the machine is suspended.
#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;

/// The clock. On macOS it goes on while the machine sleeps, unlike that of `Instant`; other systems do not say.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::Monotonic;

/// A moment by a clock that nothing sets and that counts the time for which the machine is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BootTime(Duration);

impl BootTime {
    /// Reads the clock.
    pub(super) fn now() -> Self {
        // It begins at zero.
        Self(Duration::try_from(clock_gettime(CLOCK)).unwrap_or_default())
    }

    /// Returns how long ago an earlier moment was.
    pub(super) fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for BootTime {
    type Output = Self;

    fn add(self, passed: Duration) -> Self {
        Self(self.0.saturating_add(passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_and_never_back() {
        let first = BootTime::now();
        let second = BootTime::now();
        assert_eq!(first.since(second + Duration::from_secs(1)), Duration::ZERO);
        assert_eq!((first + Duration::from_hours(8)).since(first), Duration::from_hours(8));
        assert!(second.since(first) < Duration::from_hours(1));
    }
}
