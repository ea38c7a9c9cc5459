//! The thread that reads the store at intervals.
#![expect(clippy::disallowed_methods, reason = "samples are taken by the clock")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use parking_lot::{Condvar, Mutex};

use super::samples::{CheckInRate, CommitShares, Ring};
use crate::model::CommitId;
use crate::reconcile::Controller;
use crate::store::{ChangedAnswers, CheckIns, ReplicaName, StoreError, StoreSize, StoredReplica};
use crate::telemetry::Metrics;

/// How often a daemon says that it is there, and reads which others are.
const BEAT: Duration = Duration::from_secs(15);

/// How soon it says that another commit answers.
const TICK: Duration = Duration::from_secs(1);

/// After how long a replica that does not say that it is there is missing: four beats.
const MISSING: SignedDuration = SignedDuration::from_secs(60);

/// How often the rate of check-ins is computed, and how many are kept: four hours.
const RATE: (Duration, usize) = (Duration::from_mins(1), 240);

/// How often nodes are counted by commit, and how many counts are kept: a day.
const SHARES: (Duration, usize) = (Duration::from_mins(5), 288);

/// How often the changes of days are counted, and of how many days.
const CHANGES: (Duration, i64) = (Duration::from_mins(5), 14);

/// After how long a replica that does not say that it is there is not listed any more.
const EXPIRED: SignedDuration = SignedDuration::from_hours(1);

/// What a daemon says of itself to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnReplica {
    /// Made at each start.
    pub id: String,
    /// Its name for people.
    pub name: ReplicaName,
    /// When it started.
    pub started_at: Timestamp,
}

/// A daemon that shares the store, or the one that lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedReplica {
    /// What it said last.
    pub said: StoredReplica,
    /// Whether it was not seen for a minute when the store was read last. While the store cannot be read, no
    /// replica goes missing.
    pub is_missing: bool,
}

impl ListedReplica {
    /// Lists what the store has at a time.
    fn at(time: Timestamp, said: StoredReplica) -> Self {
        let is_missing = time.duration_since(said.seen_at) > MISSING;
        Self { said, is_missing }
    }
}

/// What a store is, and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreUse {
    /// `memory`, `sqlite` or `postgres`.
    pub kind: &'static str,
    /// How much it holds; none before it was read.
    pub size: Option<StoreSize>,
}

/// The replicas, and how counts went over time.
#[derive(Debug)]
pub struct Overview {
    own: OwnReplica,
    seen: Mutex<Seen>,
    stopped: Condvar,
}

/// What was seen.
#[derive(Debug)]
struct Seen {
    replicas: Vec<ListedReplica>,
    size: Option<StoreSize>,
    shares: Ring<CommitShares>,
    rates: Ring<CheckInRate>,
    changes: Vec<ChangedAnswers>,
    is_stopping: bool,
}

/// When a kind of sample is taken next.
#[derive(Debug)]
struct Due {
    every: Duration,
    last: Option<Instant>,
}

impl Due {
    fn new(every: Duration) -> Self {
        Self { every, last: None }
    }

    /// Returns whether it is time, and begins the next interval if it is.
    fn take(&mut self, now: Instant) -> bool {
        let is_due = self.last.is_none_or(|it| now.saturating_duration_since(it) >= self.every);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }
}

impl Overview {
    /// Has seen nothing yet.
    pub fn new(own: OwnReplica) -> Self {
        let seen = Seen {
            replicas: Vec::new(),
            size: None,
            shares: Ring::new(SHARES.1),
            rates: Ring::new(RATE.1),
            changes: Vec::new(),
            is_stopping: false,
        };
        Self { own, seen: Mutex::new(seen), stopped: Condvar::new() }
    }

    /// Returns this daemon first, as it is now, then all others that share its store, as they were seen last.
    pub fn replicas(&self, controller: &Controller) -> Vec<ListedReplica> {
        let own = ListedReplica { said: self.own_replica(controller), is_missing: false };
        let mut others: Vec<ListedReplica> = self.seen.lock().replicas.clone();
        others.retain(|it| it.said.id != own.said.id);
        others.sort_by(|ListedReplica { said: one, .. }, ListedReplica { said: other, .. }| {
            (&one.name, &one.id).cmp(&(&other.name, &other.id))
        });
        [own].into_iter().chain(others).collect()
    }

    /// Returns what the store holds.
    pub fn store(&self, check_ins: &CheckIns) -> StoreUse {
        StoreUse { kind: check_ins.kind(), size: self.seen.lock().size }
    }

    /// Returns by which commits nodes were answered, oldest first.
    pub fn shares(&self) -> Vec<CommitShares> {
        self.seen.lock().shares.to_vec()
    }

    /// Returns how many check-ins were written, oldest first.
    pub fn rates(&self) -> Vec<CheckInRate> {
        self.seen.lock().rates.to_vec()
    }

    /// Returns how many answers changed on each of the last days, oldest first; days without changes are left out.
    pub fn changes(&self) -> Vec<ChangedAnswers> {
        self.seen.lock().changes.clone()
    }

    fn own_replica(&self, controller: &Controller) -> StoredReplica {
        let OwnReplica { id, name, started_at } = self.own.clone();
        StoredReplica {
            id,
            name,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: answering(controller),
            started_at,
            seen_at: Timestamp::now(),
        }
    }

    /// Takes samples until stopped. Blocking.
    pub fn keep_sampling(
        &self,
        check_ins: &CheckIns,
        controller: &Arc<Controller>,
        metrics: &Metrics,
    ) {
        let (mut beat, mut rate) = (Due::new(BEAT), Due::new(RATE.0));
        let (mut shares, mut changes) = (Due::new(SHARES.0), Due::new(CHANGES.0));
        let mut said: Option<CommitId> = None;
        let mut counted: Option<(Instant, u64)> = None;
        loop {
            let (now, time) = (Instant::now(), Timestamp::now());
            let commit = answering(controller);
            // Others learn of a commit at once, and of the first one after the start, too.
            if beat.take(now) || commit != said {
                said = commit;
                // A store that fails says so itself; what was seen before stays.
                self.meet(check_ins, controller, metrics, time).ok();
            }
            if rate.take(now) {
                let written = metrics.check_ins_written();
                let sample = counted.and_then(|(since, before)| {
                    let passed = now.saturating_duration_since(since);
                    CheckInRate::of(time, passed, written.saturating_sub(before))
                });
                counted = Some((now, written));
                if let Some(sample) = sample {
                    self.seen.lock().rates.push(sample);
                }
            }
            if shares.take(now)
                && let Ok(commits) = check_ins.commit_counts()
            {
                self.seen.lock().shares.push(CommitShares::of(time, &commits));
            }
            if changes.take(now) {
                self.count_changes(check_ins, time).ok();
            }
            let mut seen = self.seen.lock();
            if !seen.is_stopping {
                self.stopped.wait_for(&mut seen, TICK);
            }
            if seen.is_stopping {
                drop(seen);
                check_ins.forget_replica(&self.own.id).ok();
                return;
            }
        }
    }

    /// Says that this daemon is there, and reads which others are.
    fn meet(
        &self,
        check_ins: &CheckIns,
        controller: &Controller,
        metrics: &Metrics,
        time: Timestamp,
    ) -> Result<(), StoreError> {
        let own = self.own_replica(controller);
        let expired = time.checked_sub(EXPIRED).unwrap_or(Timestamp::MIN);
        let replicas = check_ins.note_replica(&own, expired)?;
        let size = check_ins.size()?;
        let named =
            replicas.iter().map(|it| (it.name.as_str(), it.commit.map(|it| it.to_string())));
        metrics.set_replicas(named);
        let replicas = replicas.into_iter().map(|it| ListedReplica::at(time, it)).collect();
        let mut seen = self.seen.lock();
        (seen.replicas, seen.size) = (replicas, Some(size));
        Ok(())
    }

    fn count_changes(&self, check_ins: &CheckIns, time: Timestamp) -> Result<(), StoreError> {
        let days = SignedDuration::from_hours(24 * (CHANGES.1 - 1));
        let since = time.checked_sub(days).unwrap_or(Timestamp::MIN);
        let changes = check_ins.changes_by_day(since, time)?;
        self.seen.lock().changes = changes;
        Ok(())
    }

    /// Ends [`Self::keep_sampling`].
    pub fn stop(&self) {
        self.seen.lock().is_stopping = true;
        self.stopped.notify_all();
    }
}

/// Returns the commit that answers, unless none does.
fn answering(controller: &Controller) -> Option<CommitId> {
    controller.snapshot().ok().map(|it| it.commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_missing_when_it_was_not_seen_for_a_minute() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let said = StoredReplica {
            id: "1".to_owned(),
            name: ReplicaName::of("a"),
            version: "0.1.0".to_owned(),
            commit: None,
            started_at: at(0),
            seen_at: at(1_000),
        };
        // A clock may be ahead of another.
        for (now, expected) in [(0, false), (1_000, false), (1_060, false), (1_061, true)] {
            assert_eq!(ListedReplica::at(at(now), said.clone()).is_missing, expected, "{now}");
        }
    }
}
