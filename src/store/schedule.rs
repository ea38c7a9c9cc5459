//! When nodes and changes are forgotten.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// How often.
pub(super) const HOUSEKEEPING: Duration = Duration::from_mins(1);

/// How long after the start, after a step of the clock, and after a failure of the store: by then the nodes that are there have been seen again,
/// whatever the time is now. Agents run every half hour.
const SETTLING: Duration = Duration::from_hours(2);

/// How much a clock may be wrong that is not said to be set.
const STEP: i64 = 600;

/// Tells when to forget. What is not seen for long is deleted for good, so no clock is trusted that was set, or
/// that stood still while the machine did.
#[derive(Debug)]
pub(super) struct HousekeepingSchedule {
    last: (Instant, Timestamp),
    due: Instant,
}

impl HousekeepingSchedule {
    /// Begins at a time, by the clock that only counts and by the one that is set.
    pub(super) fn new(now: (Instant, Timestamp)) -> Self {
        Self { last: now, due: now.0 + SETTLING }
    }

    /// Forgets nothing for a while, since nodes may not have been seen.
    pub(super) fn postpone(&mut self, now: (Instant, Timestamp)) {
        *self = Self::new(now);
    }

    /// Returns whether to forget now. Called all the time.
    pub(super) fn is_due(&mut self, now: (Instant, Timestamp)) -> bool {
        let (instant, timestamp) = std::mem::replace(&mut self.last, now);
        let counted = now.0.saturating_duration_since(instant).as_secs();
        let passed = now.1.as_second().saturating_sub(timestamp.as_second());
        if passed.saturating_sub_unsigned(counted).abs() > STEP {
            self.due = now.0 + SETTLING;
            return false;
        }
        if now.0 < self.due {
            return false;
        }
        self.due = now.0 + HOUSEKEEPING;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_forgotten_until_the_nodes_were_seen_by_this_clock() {
        const DAY: i64 = 86_400;
        const FAILED: u64 = 2 * DAY as u64;
        #[expect(clippy::disallowed_methods, reason = "times are counted from here")]
        let start = Instant::now();
        let at = |counted: u64, set: i64| {
            (start + Duration::from_secs(counted), Timestamp::from_second(set).unwrap())
        };
        let mut schedule = HousekeepingSchedule::new(at(0, 0));
        let rows = [
            (60, 60, false),
            (7_199, 7_199, false),
            (7_200, 7_201, true),
            (7_230, 7_231, false),
            (7_260, 7_262, true),
            // The clock is set forth by a month.
            (7_320, 30 * DAY, false),
            (7_400, 30 * DAY + 80, false),
            (14_519, 30 * DAY + 7_199, false),
            (14_521, 30 * DAY + 7_201, true),
            // And back.
            (14_600, 14_600, false),
            (21_799, 21_799, false),
            (21_800, 21_800, true),
            // The machine stood still for a day, and the clock that counts with it.
            (21_860, 21_860 + DAY, false),
            (29_059, 29_059 + DAY, false),
            (29_060, 29_060 + DAY, true),
        ];
        for (counted, set, expected) in rows {
            assert_eq!(schedule.is_due(at(counted, set)), expected, "{counted} {set}");
        }
        // The store failed for two days, and works again.
        schedule.postpone(at(29_060 + FAILED, 29_060 + 3 * DAY));
        for (counted, expected) in [(29_061, false), (36_259, false), (36_260, true)] {
            let set = i64::try_from(counted).unwrap() + 3 * DAY;
            assert_eq!(schedule.is_due(at(counted + FAILED, set)), expected, "{counted}");
        }
    }
}
