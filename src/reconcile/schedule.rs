//! When the branch is looked at next. Pure: chance is an argument.

use std::time::Duration;

use crate::git::FetchFailure;

/// The longest wait between two attempts that fail.
const LONGEST: Duration = Duration::from_mins(5);

/// The least wait after a refused login: forges lock accounts.
const AFTER_REFUSAL: Duration = Duration::from_secs(30);

/// Returns when to look again after a look that went well: the interval, ten per cent more or less,
/// so that many daemons do not look at the same time. `chance` lies in 0..1.
pub(super) fn after_success(interval: Duration, chance: f64) -> Duration {
    interval.mul_f64(0.9 + 0.2 * chance)
}

/// Returns when to look again after the n-th failure in a row: twice as late each time, up to five
/// minutes or the interval if that is longer, and anywhere in the later half of that.
pub(super) fn after_failure(
    interval: Duration,
    failure: FetchFailure,
    in_a_row: u32,
    chance: f64,
) -> Duration {
    let first = interval.min(Duration::from_secs(1));
    let doubled = first.saturating_mul(2_u32.saturating_pow(in_a_row.saturating_sub(1).min(20)));
    let longest = LONGEST.max(interval);
    let wait = doubled.min(longest).mul_f64(0.5 + 0.5 * chance);
    match failure {
        FetchFailure::AuthenticationFailed => wait.max(AFTER_REFUSAL.min(longest)),
        _ => wait,
    }
}

/// The least time between two looks that something asks for: webhooks, operators, clients that want
/// a commit which is not here yet. However many ask, they share one.
const ASKED: Duration = Duration::from_secs(1);

/// Returns how long a look that is asked for waits, given how long ago the last one began; after a
/// quiet time it does not wait.
pub(super) fn until_asked(since_last: Option<Duration>) -> Duration {
    since_last.map_or(Duration::ZERO, |it| ASKED.saturating_sub(it))
}

/// Returns how long the next look for expected commits waits. One commit is looked for soon; many
/// at once share a look a second.
pub(super) fn until_expected(soonest: Duration, expected: usize) -> Duration {
    if expected > 1 { soonest.max(ASKED) } else { soonest }
}

/// After these times, in milliseconds, a look is repeated that did not show the commit that a
/// webhook told of: forges tell of pushes before all of their replicas show them.
const VISIBILITY: [u64; 9] = [200, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000];

/// Returns when to look for an expected commit again, counted from the webhook; none ends it.
pub(super) fn look_for_expected(tries: usize) -> Option<Duration> {
    VISIBILITY.get(tries).copied().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_keep_the_interval_within_ten_per_cent() {
        let interval = Duration::from_secs(30);
        assert_eq!(after_success(interval, 0.0), Duration::from_secs(27));
        assert_eq!(after_success(interval, 0.5), Duration::from_secs(30));
        assert!(after_success(interval, 0.999) < Duration::from_secs(33));
    }

    #[test]
    fn failures_back_off_up_to_five_minutes() {
        let interval = Duration::from_secs(30);
        let wait = |n| after_failure(interval, FetchFailure::ConnectFailed, n, 1.0).as_secs();
        let waits: Vec<u64> = (1..12).map(wait).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(wait(u32::MAX), 300);
        let least = after_failure(interval, FetchFailure::ConnectFailed, 3, 0.0);
        assert_eq!(least, Duration::from_secs(2));
        let hourly = Duration::from_hours(1);
        assert_eq!(after_failure(hourly, FetchFailure::Timeout, 30, 1.0), hourly);
        let short = Duration::from_millis(50);
        assert_eq!(after_failure(short, FetchFailure::Timeout, 1, 1.0), short);
    }

    #[test]
    fn a_refused_login_is_not_repeated_soon() {
        let interval = Duration::from_secs(1);
        let wait = after_failure(interval, FetchFailure::AuthenticationFailed, 1, 0.0);
        assert_eq!(wait, AFTER_REFUSAL);
    }

    #[test]
    fn what_is_asked_for_comes_at_once_and_then_once_a_second() {
        let millis = Duration::from_millis;
        for (since_last, wait) in [
            (None, millis(0)),
            (Some(millis(0)), millis(1000)),
            (Some(millis(400)), millis(600)),
            (Some(millis(5000)), millis(0)),
        ] {
            assert_eq!(until_asked(since_last), wait);
        }
        assert_eq!(until_expected(millis(200), 1), millis(200));
        assert_eq!(until_expected(millis(200), 2), millis(1000));
        assert_eq!(until_expected(millis(4000), 64), millis(4000));
    }

    #[test]
    fn an_expected_commit_is_looked_for_for_a_minute() {
        assert_eq!(look_for_expected(0), Some(Duration::from_millis(200)));
        assert_eq!(look_for_expected(8), Some(Duration::from_mins(1)));
        assert_eq!(look_for_expected(9), None);
    }
}
