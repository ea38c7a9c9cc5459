//! Samples over time, a bounded number of each kind.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;

use crate::model::CommitId;

/// How many commits a sample names; the nodes of all others are counted together.
const COMMITS: usize = 5;

/// The newest samples, oldest first.
#[derive(Clone, Debug)]
pub(super) struct Ring<T> {
    most: usize,
    samples: VecDeque<T>,
}

impl<T: Clone> Ring<T> {
    pub(super) fn new(most: usize) -> Self {
        Self { most, samples: VecDeque::new() }
    }

    pub(super) fn push(&mut self, sample: T) {
        while self.samples.len() >= self.most.max(1) {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    pub(super) fn to_vec(&self) -> Vec<T> {
        self.samples.iter().cloned().collect()
    }
}

/// How many nodes a commit answered last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitCount {
    /// The commit.
    pub commit: CommitId,
    /// How many nodes.
    pub nodes: u64,
}

/// By which commits nodes were answered last, at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitShares {
    /// When.
    pub time: Timestamp,
    /// The commits with most nodes, by id.
    pub commits: Vec<CommitCount>,
    /// The nodes of all other commits.
    pub others: u64,
}

impl CommitShares {
    /// Names the commits with most nodes, of all.
    pub(super) fn of(time: Timestamp, all: &BTreeMap<CommitId, u64>) -> Self {
        let mut commits: Vec<CommitCount> =
            all.iter().map(|(&commit, &nodes)| CommitCount { commit, nodes }).collect();
        commits.sort_by_key(|it| std::cmp::Reverse(it.nodes));
        let others = commits.iter().skip(COMMITS).map(|it| it.nodes).sum();
        commits.truncate(COMMITS);
        commits.sort_by_key(|it| it.commit);
        Self { time, commits, others }
    }
}

/// How many check-ins were written until a time, since the sample before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckInRate {
    /// The end of the interval.
    pub time: Timestamp,
    /// Check-ins a minute.
    pub per_minute: u64,
}

impl CheckInRate {
    /// Computes the rate of so many in an interval, by a clock that is not set; none if no time passed.
    pub(super) fn of(time: Timestamp, passed: Duration, written: u64) -> Option<Self> {
        let millis = u64::try_from(passed.as_millis()).ok()?;
        let per_minute = written.saturating_mul(60_000).checked_div(millis)?;
        Some(Self { time, per_minute })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(number: u8) -> CommitId {
        format!("{number:040x}").parse().unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_ring_keeps_the_newest() {
        let mut ring = Ring::new(3);
        for number in 0..10 {
            ring.push(number);
        }
        assert_eq!(ring.to_vec(), [7, 8, 9]);
    }

    #[test]
    fn the_nodes_of_rare_commits_are_counted_together() {
        let all = (1..=8).map(|it| (commit(it), u64::from(it))).collect();
        let shares = CommitShares::of(at(0), &all);
        let named: Vec<u64> = shares.commits.iter().map(|it| it.nodes).collect();
        assert_eq!((named, shares.others), (vec![4, 5, 6, 7, 8], 1 + 2 + 3));
    }

    #[test]
    fn a_rate_is_for_the_time_that_passed() {
        let rate = |seconds, written| {
            CheckInRate::of(at(0), Duration::from_secs(seconds), written).map(|it| it.per_minute)
        };
        assert_eq!(rate(30, 15), Some(30));
        assert_eq!(rate(0, 15), None);
    }
}
