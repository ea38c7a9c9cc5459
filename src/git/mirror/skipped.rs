//! The refs that could not be fetched or kept, and when each is fetched again. Pure: the time is an argument.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use git2::Oid;

use crate::git::failure::{FetchError, FetchFailure};

/// The longest wait between two fetches of a ref that failed.
const LONGEST: Duration = Duration::from_mins(5);

/// Up to how many failures a ref may arrive soon: they take half a minute.
const SOON: u32 = 4;

/// A ref that is not fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedRef {
    /// Its full name at the remote.
    pub name: String,
    /// What is wrong with it.
    pub failure: FetchFailure,
    /// The same for people.
    pub message: String,
}

/// The refs that are not fetched, by their names in the mirror.
#[derive(Debug, Default)]
pub(super) struct SkippedRefs(BTreeMap<String, SkippedEntry>);

#[derive(Debug)]
struct SkippedEntry {
    /// What the ref named when it was skipped.
    target: Oid,
    skipped: SkippedRef,
    /// How many fetches of it failed, alone or with others.
    failures: u32,
    /// When it is fetched again; none if only the remote can mend it.
    due: Option<Instant>,
}

impl SkippedRefs {
    /// Adds a ref that cannot be fetched or kept.
    pub(super) fn insert(&mut self, kept: &str, target: Oid, skipped: SkippedRef, now: Instant) {
        let before = self.0.get(kept).filter(|it| it.target == target);
        let failures = before.map_or(0, |it| it.failures).saturating_add(1);
        let due = (!is_final(skipped.failure)).then(|| now + pause(failures));
        self.0.insert(kept.to_owned(), SkippedEntry { target, skipped, failures, due });
    }

    /// Counts a fetch that failed of the ref and others.
    pub(super) fn postpone(&mut self, kept: &str, now: Instant) {
        if let Some(entry) = self.0.get_mut(kept) {
            entry.failures = entry.failures.saturating_add(1);
            entry.due = entry.due.map(|_| now + pause(entry.failures));
        }
    }

    /// Has all that are fetched again fetched now.
    pub(super) fn make_due(&mut self, now: Instant) {
        for entry in self.0.values_mut() {
            entry.due = entry.due.map(|it| it.min(now));
        }
    }

    /// Removes a ref that was fetched.
    pub(super) fn remove(&mut self, kept: &str) {
        self.0.remove(kept);
    }

    /// Removes all refs.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Keeps those that the remote has as they were skipped.
    pub(super) fn retain(&mut self, there: &HashSet<(&str, Oid)>) {
        self.0.retain(|kept, it| there.contains(&(kept.as_str(), it.target)));
    }

    /// Returns whether all are at the remote as they were skipped.
    pub(super) fn are_in(&self, there: &HashSet<(&str, Oid)>) -> bool {
        self.0.iter().all(|(kept, it)| there.contains(&(kept.as_str(), it.target)))
    }

    /// Returns whether a ref was skipped where it is now.
    pub(super) fn contains(&self, kept: &str, target: Oid) -> bool {
        self.0.get(kept).is_some_and(|it| it.target == target)
    }

    /// Returns how many fetches of a ref failed, if it is to be fetched again now.
    pub(super) fn due(&self, kept: &str, now: Instant) -> Option<u32> {
        let entry = self.0.get(kept)?;
        entry.due.filter(|it| *it <= now).map(|_| entry.failures)
    }

    /// Returns how long it takes until one is fetched again; none if none is.
    pub(super) fn until_due(&self, now: Instant) -> Option<Duration> {
        let soonest = self.0.values().filter_map(|it| it.due).min();
        soonest.map(|it| it.saturating_duration_since(now))
    }

    /// Returns whether one failed so few times that it may arrive soon.
    pub(super) fn has_recent(&self) -> bool {
        self.0.values().any(|it| it.due.is_some() && it.failures <= SOON)
    }

    /// Returns why the ref of a name is not fetched.
    pub(super) fn error_of(&self, name: &str) -> Option<FetchError> {
        let skipped = self.iter().find(|it| it.name == name)?;
        Some(FetchError { failure: skipped.failure, message: skipped.message.clone() })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SkippedRef> {
        self.0.values().map(|it| &it.skipped)
    }
}

/// Returns whether a fetch fails again for the same reason until the ref moves or the daemon gets other settings.
fn is_final(failure: FetchFailure) -> bool {
    matches!(failure, FetchFailure::LimitExceeded | FetchFailure::UnusableRef)
}

/// Returns how long to wait after the n-th failure: two seconds, then twice as long each time, up to five minutes.
fn pause(failures: u32) -> Duration {
    Duration::from_secs(1_u64 << failures.min(9)).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: &str = "refs/pull/1/head";

    fn skipped(failure: FetchFailure) -> SkippedRef {
        SkippedRef { name: KEPT.to_owned(), failure, message: "x".to_owned() }
    }

    #[expect(clippy::disallowed_methods, reason = "a test needs a time to begin with")]
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn a_failure_that_may_pass_is_repeated_after_pauses_that_double() {
        let mut refs = SkippedRefs::default();
        let mut now = start();
        let mut waits = Vec::new();
        for _ in 0..10 {
            refs.insert(KEPT, Oid::ZERO_SHA1, skipped(FetchFailure::Timeout), now);
            assert_eq!(refs.due(KEPT, now), None);
            let wait = refs.until_due(now).unwrap();
            waits.push(wait.as_secs());
            now += wait;
            assert!(refs.due(KEPT, now).is_some());
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        let moved = Oid::from_bytes(&[1; 20]).unwrap();
        refs.insert(KEPT, moved, skipped(FetchFailure::Timeout), now);
        assert_eq!(refs.until_due(now), Some(Duration::from_secs(2)), "it is another commit");
        refs.postpone(KEPT, now);
        assert_eq!(refs.until_due(now), Some(Duration::from_secs(4)));
        refs.make_due(now);
        assert_eq!(refs.due(KEPT, now), Some(2));
    }

    #[test]
    fn what_only_the_remote_can_mend_is_not_repeated() {
        for (failure, is_repeated) in [
            (FetchFailure::LimitExceeded, false),
            (FetchFailure::UnusableRef, false),
            (FetchFailure::Timeout, true),
            (FetchFailure::MalformedResponse, true),
            (FetchFailure::CorruptObjects, true),
            (FetchFailure::Other, true),
        ] {
            let (mut refs, now) = (SkippedRefs::default(), start());
            refs.insert(KEPT, Oid::ZERO_SHA1, skipped(failure), now);
            assert_eq!(refs.until_due(now).is_some(), is_repeated, "{failure:?}");
            assert_eq!(refs.has_recent(), is_repeated, "{failure:?}");
            refs.make_due(now);
            assert_eq!(refs.due(KEPT, now).is_some(), is_repeated, "{failure:?}");
        }
    }

    #[test]
    fn a_ref_that_failed_often_is_not_expected_soon() {
        let (mut refs, now) = (SkippedRefs::default(), start());
        refs.insert(KEPT, Oid::ZERO_SHA1, skipped(FetchFailure::Timeout), now);
        for _ in 0..3 {
            refs.postpone(KEPT, now);
        }
        assert!(refs.has_recent());
        refs.postpone(KEPT, now);
        assert!(!refs.has_recent());
    }
}
