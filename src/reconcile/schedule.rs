//! When the branch is fetched next. Pure: chance is an argument.

use std::time::Duration;

use crate::git::FetchFailure;

/// The longest wait between two attempts that fail.
const LONGEST: Duration = Duration::from_mins(5);

/// The least wait after a refused login: forges lock accounts.
const AFTER_REFUSAL: Duration = Duration::from_secs(30);

/// Returns how long to wait after a successful fetch: the interval, ten per cent more or less, so that
/// many daemons do not fetch at the same time. `chance` lies in 0..1.
pub(super) fn after_success(interval: Duration, chance: f64) -> Duration {
    interval.mul_f64(0.9 + 0.2 * chance)
}

/// Returns how long to wait after the n-th failure in a row: twice as long each time, up to five
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

/// The least time between two fetches that are requested: by webhooks, operators, and clients that want
/// a commit which is not here yet. All requests share one fetch.
const REQUESTED: Duration = Duration::from_secs(1);

/// Returns how long a requested fetch waits, given how long ago the last one began; after a quiet time
/// it does not wait.
pub(super) fn until_requested(since_last: Option<Duration>) -> Duration {
    since_last.map_or(Duration::ZERO, |it| REQUESTED.saturating_sub(it))
}

/// Returns how long the next fetch for expected commits waits. For one commit it comes soon; many share
/// a fetch a second.
pub(super) fn until_expected(soonest: Duration, expected: usize) -> Duration {
    if expected > 1 { soonest.max(REQUESTED) } else { soonest }
}

/// After these times, in milliseconds, a fetch is repeated that lacked the commit that a webhook
/// announced: forges announce pushes before all of their replicas show them.
const VISIBILITY: [u64; 9] = [200, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000];

/// Returns when to fetch again for an expected commit, counted from the webhook; none ends it.
pub(super) fn next_try_for_expected(tries: usize) -> Option<Duration> {
    VISIBILITY.get(tries).copied().map(Duration::from_millis)
}

/// Returns how long to wait after a try that failed: one second, then twice as long each time, up to
/// five minutes.
pub(super) fn backoff(tries: u32) -> Duration {
    Duration::from_secs(1_u64 << tries.min(9)).min(LONGEST)
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
    fn requested_fetches_come_at_once_and_then_once_a_second() {
        let millis = Duration::from_millis;
        for (since_last, wait) in [
            (None, millis(0)),
            (Some(millis(0)), millis(1000)),
            (Some(millis(400)), millis(600)),
            (Some(millis(5000)), millis(0)),
        ] {
            assert_eq!(until_requested(since_last), wait);
        }
        assert_eq!(until_expected(millis(200), 1), millis(200));
        assert_eq!(until_expected(millis(200), 2), millis(1000));
        assert_eq!(until_expected(millis(4000), 64), millis(4000));
    }

    #[test]
    fn an_expected_commit_is_fetched_for_a_minute() {
        assert_eq!(next_try_for_expected(0), Some(Duration::from_millis(200)));
        assert_eq!(next_try_for_expected(8), Some(Duration::from_mins(1)));
        assert_eq!(next_try_for_expected(9), None);
    }
}
