//! The journal: what became of commits here, and when.
//!
//! One JSON object a line, appended and synced before it takes effect. A crash leaves the last
//! record whole or cuts it short; a record cut short is dropped when the journal is opened again.
//! Everything that must survive a restart beside the commits themselves is read from here: what
//! answers, what is pinned, what answered at a given time.

mod disk;
mod file;
mod timeline;

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub(super) use self::disk::Disk;
use self::disk::OsDisk;
use self::file::{JournalFile, Location};
use super::clock::Now;
use super::trigger::Trigger;
use crate::changeset::WriteOutcome;
use crate::forge::StatusState;
use crate::model::CommitId;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When, by the clock of this machine.
    pub time: Timestamp,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

/// What can happen to a commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The watched branch was seen at it.
    Fetched {
        /// The commit.
        commit: CommitId,
    },
    /// It began to answer.
    Activated {
        /// The commit.
        commit: CommitId,
        /// What brought it here.
        trigger: Trigger,
    },
    /// It was found wanting, and never answers.
    Rejected {
        /// The commit.
        commit: CommitId,
        /// Where it failed.
        stage: Stage,
    },
    /// A newer one came before it was built.
    Superseded {
        /// The commit.
        commit: CommitId,
        /// The newer one.
        by: CommitId,
    },
    /// The forge was told what it came to.
    Reported {
        /// The commit.
        commit: CommitId,
        /// What the status is about.
        context: String,
        /// What it came to.
        state: StatusState,
    },
    /// A check of it, the head of a pull request, begins in a process of its own.
    HeadCheckBegan {
        /// The commit.
        commit: CommitId,
    },
    /// That check was stopped with the daemon.
    HeadCheckStopped {
        /// The commit.
        commit: CommitId,
    },
    /// That check ended; the forge is told next.
    HeadChecked {
        /// The commit.
        commit: CommitId,
        /// What it came to.
        state: StatusState,
        /// A sentence about it.
        description: String,
    },
    /// An operator keeps it answering.
    Pinned {
        /// The commit.
        commit: CommitId,
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
    },
    /// An operator has the branch followed again.
    Resumed {
        /// Who.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        actor: Option<String>,
        /// The head that they accept although it does not descend from what answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        accepts: Option<CommitId>,
    },
    /// Its signatures are what `--verify` demands.
    Verified {
        /// The commit.
        commit: CommitId,
        /// Whose key signed it.
        signer: String,
    },
    /// The clock of this machine was set.
    ClockSet {
        /// What it showed last before.
        until: Timestamp,
        /// The earliest that it can have shown after.
        since: Timestamp,
    },
    /// Writes of clients are about to be pushed.
    Pushing {
        /// The writes, in order.
        writes: Vec<PushedWrite>,
    },
    /// The clients of writes were told.
    Answered {
        /// The commits of the writes.
        commits: Vec<CommitId>,
    },
}

/// A write of a client that may be at the remote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PushedWrite {
    /// The same for the same request of the same client.
    pub fingerprint: String,
    /// The commit.
    pub commit: CommitId,
    /// What the client is told.
    pub answer: WriteOutcome,
}

/// Where a commit can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Its signature.
    Verify,
    /// It could not be read.
    Load,
    /// Its files.
    Check,
}

/// The journal of a data directory, or of this process alone.
#[derive(Debug, Default)]
pub struct Journal {
    records: Vec<Record>,
    /// How many of the records are on disk.
    saved: usize,
    file: Option<JournalFile>,
    clock: Option<Now>,
}

/// How far the clock may be from where it should be without having been set.
const DRIFT: SignedDuration = SignedDuration::from_secs(1);

impl Journal {
    /// Opens the journal in a file, or begins one.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or written.
    pub(super) fn open(path: &Path, now: Now) -> io::Result<Self> {
        Self::open_on(Box::new(OsDisk), path, now)
    }

    /// The same on any disk.
    pub(super) fn open_on(disk: Box<dyn Disk>, path: &Path, now: Now) -> io::Result<Self> {
        let (file, bytes) = JournalFile::open(disk, path)?;
        let mut records = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(record) => records.push(record),
                Err(_) if line.trim_ascii().is_empty() => {}
                // Such as a line of a newer version: what it says does not matter to this one.
                Err(error) => tracing::warn!(%error, "a line of the journal cannot be read"),
            }
        }
        let saved = records.len();
        let mut journal = Self { records, saved, file: Some(file), clock: None };
        // It may have been set back while no daemon ran.
        journal.check_clock(now);
        Ok(journal)
    }

    /// Records what happens now: on disk, or not at all.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written; the journal is then as it was.
    pub(super) fn append(&mut self, event: Event, now: Now) -> io::Result<()> {
        self.check_clock(now);
        let record = Record { time: now.wall, event };
        self.save(Some(&record))?;
        self.records.push(record);
        self.saved = self.records.len();
        Ok(())
    }

    /// Records what happens now, in memory at least.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not on disk; [`Journal::retry`] writes it later.
    pub(super) fn keep(&mut self, event: Event, now: Now) -> io::Result<()> {
        self.check_clock(now);
        self.records.push(Record { time: now.wall, event });
        self.save(None)
    }

    /// Writes what is not on disk yet, and finds out whether more could be written.
    ///
    /// # Errors
    ///
    /// Returns an error if something cannot be written.
    pub fn retry(&mut self) -> io::Result<()> {
        self.save(None)?;
        self.file.as_ref().map_or(Ok(()), JournalFile::probe)
    }

    /// Writes what is not on disk yet, and the whole file if it was deleted.
    ///
    /// # Errors
    ///
    /// Returns an error if something cannot be written.
    pub fn save_all(&mut self) -> io::Result<()> {
        self.save(None)
    }

    /// Records that the clock was set, if it was.
    pub(super) fn check_clock(&mut self, now: Now) {
        let set = match self.clock.replace(now) {
            Some(last) => {
                let passed = now.since(last.monotonic);
                let until = after(last.wall, passed);
                let since = before(now.wall, passed);
                let drift = now.wall.duration_since(until).abs();
                (drift > DRIFT).then_some(Event::ClockSet { until, since })
            }
            None => self
                .records
                .last()
                .filter(|it| it.time > now.wall)
                .map(|last| Event::ClockSet { until: last.time, since: now.wall }),
        };
        // It is written with the record that follows.
        self.records.extend(set.map(|event| Record { time: now.wall, event }));
    }

    /// Writes what is not on disk yet and one more record.
    fn save(&mut self, more: Option<&Record>) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            match file.location()? {
                Location::InPlace => {
                    let unsaved = self.records.iter().skip(self.saved).chain(more);
                    let lines = lines(unsaved)?;
                    if !lines.is_empty() {
                        file.append(&lines)?;
                    }
                }
                Location::Gone => file.recreate(&lines(self.records.iter().chain(more))?)?,
            }
        }
        self.saved = self.records.len();
        Ok(())
    }

    /// Returns everything that happened, oldest first.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// Returns the commit that answered last.
    pub fn live(&self) -> Option<CommitId> {
        self.activations().next_back().map(|(_, commit)| commit)
    }

    /// Returns the commit of the branch that answered last, a pinned one aside.
    pub fn followed(&self) -> Option<CommitId> {
        let (mut pinned, mut followed) = (None, None);
        for record in &self.records {
            match record.event {
                Event::Pinned { commit, .. } => pinned = Some(commit),
                Event::Resumed { .. } => pinned = None,
                Event::Activated { commit, .. } if pinned != Some(commit) => {
                    followed = Some(commit);
                }
                _ => {}
            }
        }
        followed
    }

    /// Returns the commit that answered at a time: the later one if the clock showed the time twice.
    pub(super) fn live_at(&mut self, time: Timestamp, now: Now) -> Option<CommitId> {
        self.check_clock(now);
        timeline::live_at(&self.records, time, now.wall)
    }

    /// Returns the commit that an operator keeps answering, and since when.
    pub fn pinned(&self) -> Option<(CommitId, Timestamp)> {
        let last = self
            .records
            .iter()
            .rev()
            .find(|it| matches!(it.event, Event::Pinned { .. } | Event::Resumed { .. }))?;
        match last.event {
            Event::Pinned { commit, .. } => Some((commit, last.time)),
            _ => None,
        }
    }

    /// Returns the head that an operator accepts although it does not descend from what answered.
    pub fn accepted(&self) -> Option<CommitId> {
        self.records.iter().rev().find_map(|it| match it.event {
            Event::Resumed { accepts, .. } => Some(accepts),
            Event::Pinned { .. } => Some(None),
            _ => None,
        })?
    }

    /// Returns the writes that were to be pushed not long ago and whose clients were not told, the
    /// newest first, among the newest [`REPEATABLE`] writes.
    pub(super) fn unanswered(&mut self, within: SignedDuration, now: Now) -> Vec<PushedWrite> {
        self.check_clock(now);
        self.unanswered_at(now.wall, within)
    }

    fn unanswered_at(&self, now: Timestamp, within: SignedDuration) -> Vec<PushedWrite> {
        let since = now.saturating_sub(within).unwrap_or(Timestamp::MIN);
        let mut answered: HashSet<CommitId> = HashSet::new();
        let mut found = Vec::new();
        let mut seen = 0;
        // How far the clock was set back since a record. It shows less now than it did then.
        let mut ahead = SignedDuration::ZERO;
        for record in self.records.iter().rev() {
            match &record.event {
                Event::ClockSet { until, since: from } => {
                    ahead = ahead.saturating_add(until.duration_since(*from));
                }
                Event::Answered { commits } => answered.extend(commits),
                Event::Pushing { writes } => {
                    seen += writes.len();
                    let is_new = record.time.saturating_sub(ahead).is_ok_and(|it| it >= since);
                    let untold = writes.iter().rev().filter(|it| !answered.contains(&it.commit));
                    found.extend(untold.filter(|_| is_new).cloned());
                }
                _ => {}
            }
            if seen >= REPEATABLE {
                break;
            }
        }
        found
    }

    /// Returns since when which commits answered, oldest first.
    pub fn activations(&self) -> impl DoubleEndedIterator<Item = (Timestamp, CommitId)> {
        self.records.iter().filter_map(|it| match it.event {
            Event::Activated { commit, .. } => Some((it.time, commit)),
            _ => None,
        })
    }
}

/// How many writes are known again when they are sent again.
const REPEATABLE: usize = 1_000;

fn lines<'r>(records: impl Iterator<Item = &'r Record>) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for record in records {
        serde_json::to_writer(&mut lines, record)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

fn after(time: Timestamp, passed: Duration) -> Timestamp {
    SignedDuration::try_from(passed)
        .ok()
        .and_then(|passed| time.checked_add(passed).ok())
        .unwrap_or(Timestamp::MAX)
}

fn before(time: Timestamp, passed: Duration) -> Timestamp {
    SignedDuration::try_from(passed)
        .ok()
        .and_then(|passed| time.checked_sub(passed).ok())
        .unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests read and damage the file")]
mod tests {
    use super::*;

    fn commit(digit: u8) -> CommitId {
        CommitId::from_bytes([digit; 20])
    }

    fn activated(digit: u8) -> Event {
        Event::Activated { commit: commit(digit), trigger: Trigger::Poll }
    }

    #[test]
    fn what_happened_survives_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut journal = Journal::open(&path, Now::read()).unwrap();
        assert_eq!((journal.live(), journal.pinned()), (None, None));
        journal.append(activated(1), Now::read()).unwrap();
        journal
            .append(Event::Pinned { commit: commit(1), actor: Some("ada".into()) }, Now::read())
            .unwrap();
        journal
            .append(Event::Rejected { commit: commit(2), stage: Stage::Check }, Now::read())
            .unwrap();
        let records = journal.records().to_vec();
        drop(journal);
        let mut journal = Journal::open(&path, Now::read()).unwrap();
        assert_eq!(journal.records(), records);
        assert_eq!(journal.live(), Some(commit(1)));
        assert_eq!(journal.pinned().map(|it| it.0), Some(commit(1)));
        journal.append(Event::Resumed { actor: None, accepts: None }, Now::read()).unwrap();
        journal.append(activated(3), Now::read()).unwrap();
        assert_eq!((journal.live(), journal.pinned()), (Some(commit(3)), None));
        let first = journal.records()[0].time;
        let before = first - SignedDuration::from_secs(1);
        assert_eq!(journal.live_at(before, Now::read()), None);
        assert!(journal.live_at(first, Now::read()).is_some());
        assert_eq!(journal.live_at(Now::read().wall, Now::read()), Some(commit(3)));
    }

    #[test]
    fn writes_whose_clients_were_not_told_are_known_again() {
        let write = |digit, answer| PushedWrite {
            fingerprint: format!("f{digit}"),
            commit: commit(digit),
            answer,
        };
        let nodes = serde_json::json!({"nodes": [{"name": "n", "groups": []}]});
        let writes = vec![write(1, WriteOutcome::Done), write(2, WriteOutcome::Unpinned(nodes))];
        let last = write(3, WriteOutcome::Created(crate::model::GroupId::ROOT));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut journal = Journal::open(&path, Now::read()).unwrap();
        journal.append(Event::Pushing { writes: writes.clone() }, Now::read()).unwrap();
        journal.append(Event::Answered { commits: vec![commit(1)] }, Now::read()).unwrap();
        journal.append(Event::Pushing { writes: vec![last.clone()] }, Now::read()).unwrap();
        let mut journal = Journal::open(&path, Now::read()).unwrap();
        let all = [last, writes[1].clone()];
        let (now, hour) = (Now::read().wall, SignedDuration::from_hours(1));
        assert_eq!(journal.unanswered_at(now, hour), all);
        assert_eq!(journal.unanswered_at(now + hour * 2, hour), []);
        // The clock jumps ahead: the writes are as young as before.
        let (reading, day) = (Now::read(), SignedDuration::from_hours(24));
        journal.check_clock(Now { wall: reading.wall + day, ..reading });
        assert_eq!(journal.unanswered_at(now + day, hour), all);
        assert_eq!(journal.unanswered_at(now + day + hour * 2, hour), []);
        // It is set right again; what was recorded meanwhile has a later time.
        journal.append(activated(4), Now::read()).unwrap();
        assert_eq!(journal.unanswered(hour, Now::read()), all);
        assert_eq!(journal.unanswered_at(now + hour * 2, hour), []);
    }

    #[test]
    fn a_record_cut_short_is_absent_wherever_the_cut_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut journal = Journal::open(&path, Now::read()).unwrap();
        journal.append(activated(1), Now::read()).unwrap();
        let one = std::fs::metadata(&path).unwrap().len();
        journal.append(activated(2), Now::read()).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for end in usize::try_from(one).unwrap()..whole.len() {
            std::fs::write(&path, &whole[..end]).unwrap();
            let mut journal = Journal::open(&path, Now::read()).unwrap();
            assert_eq!(journal.live(), Some(commit(1)), "cut at {end}");
            journal.append(activated(3), Now::read()).unwrap();
            assert_eq!(
                Journal::open(&path, Now::read()).unwrap().records().len(),
                2,
                "cut at {end}"
            );
        }
        assert_eq!(whole.last(), Some(&b'\n'));
    }

    #[test]
    fn lines_that_nobody_understands_are_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        Journal::open(&path, Now::read()).unwrap().append(activated(1), Now::read()).unwrap();
        let mut bytes = b"{\"event\": \"of a later version\"}\n\xff\xfe\n".to_vec();
        bytes.extend(std::fs::read(&path).unwrap());
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Journal::open(&path, Now::read()).unwrap().live(), Some(commit(1)));
    }
}
