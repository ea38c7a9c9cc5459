//! The journal: what happened to commits here, and when.
//!
//! One JSON object a line, appended and synced before it takes effect. A crash leaves the last
//! record whole or cuts it short; a record cut short is dropped when the journal is opened again.
//! Everything that must survive a restart beside the commits themselves is read from here: which commit
//! is live, which is pinned, which was live at a given time.

mod disk;
mod event;
mod file;
mod queries;
mod timeline;

use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

pub(super) use self::disk::Disk;
use self::disk::OsDisk;
#[cfg(test)]
pub(super) use self::disk::{Access, DiskFile, FileMetadata};
use self::file::{JournalFile, Location};
use super::clock::Now;

pub use self::event::{Event, LiveReport, PushedWrite, Record, Stage};

/// The journal of a data directory, or of this process alone.
#[derive(Debug, Default)]
pub struct Journal {
    records: Vec<Record>,
    /// How many of the records are on disk.
    saved: usize,
    file: Option<JournalFile>,
    clock: Option<Now>,
}

/// Opens the journal in a file, now.
///
/// # Errors
///
/// Returns an error if the file cannot be read or written.
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub fn fuzz_journal(path: &Path) -> io::Result<Journal> {
    Journal::open(path, Now::read())
}

/// From how many bytes on a journal is made shorter at the start.
const LARGE: usize = 32 << 20;

/// For how long is kept what is needed soon or never: whether clients were told of their writes, and what forges have.
const USEFUL: SignedDuration = SignedDuration::from_hours(90 * 24);

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
        let (mut records, mut is_whole) = (Vec::new(), true);
        for (number, line) in (1_usize..).zip(bytes.split(|byte| *byte == b'\n')) {
            let read = serde_json::from_slice(line);
            is_whole &= read.is_ok() || line.trim_ascii().is_empty();
            match read {
                Ok(record) => records.push(record),
                Err(_) if line.trim_ascii().is_empty() => {}
                Err(error) if !error.is_data() => tracing::error!(
                    path = %path.display(), line = number, %error,
                    "a line of the journal is damaged: if it says that an operator pinned or resumed, the file `journal-pin` has that as \
                     well, unless it was changed, too; `clade status` shows which commit is pinned, and `?at=` takes what was live before for what it tells"
                ),
                // Such as a line of a newer version: what it says does not matter to this one.
                Err(error) => tracing::warn!(
                    path = %path.display(), line = number, %error,
                    "a line of the journal cannot be read; `?at=` takes what was live before for what it tells"
                ),
            }
        }
        let saved = records.len();
        let mut journal = Self { records, saved, file: Some(file), clock: None };
        // A line that only another version reads stays for that one.
        if is_whole && bytes.len() > LARGE {
            journal.shorten(now);
        }
        // It may have been set back while no daemon ran.
        journal.check_clock(now);
        Ok(journal)
    }

    /// Drops what nothing asks for after a long time, by the newest record where the clock is ahead of it.
    fn shorten(&mut self, now: Now) {
        let newest = self.records.last().map_or(now.wall, |it| it.time.min(now.wall));
        let before = newest.saturating_sub(USEFUL).unwrap_or(Timestamp::MIN);
        let all = self.records.len();
        self.records.retain(|it| it.time >= before || it.event.is_lasting());
        self.saved = self.records.len();
        // To write it again takes as long as to read it, so it must be worth it.
        if self.saved > all / 4 * 3 {
            return;
        }
        let written = lines(self.records.iter());
        let file = self.file.as_mut();
        match file.map_or(Ok(()), |it| written.and_then(|lines| it.recreate(&lines))) {
            Ok(()) => tracing::info!(
                dropped = all - self.saved,
                "the journal is shorter: old writes and commit statuses are dropped"
            ),
            // The file has them still, which does no harm.
            Err(error) => tracing::warn!(%error, "the journal is large and cannot be made shorter"),
        }
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
                let passed = now.age_of(last.boot);
                let until = after(last.wall, passed);
                let since = now.ago(passed);
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
                Location::Gone | Location::Unsynced => {
                    file.recreate(&lines(self.records.iter().chain(more))?)?;
                }
            }
        }
        self.saved = self.records.len();
        Ok(())
    }

    /// Returns everything that happened, oldest first.
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}

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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests read and damage the file")]
mod tests {
    use super::*;
    use crate::changeset::WriteOutcome;
    use crate::model::CommitId;
    use crate::reconcile::attribution::Attribution;
    use crate::reconcile::trigger::Trigger;

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
        let ada = Attribution { actor: Some("ada".into()), reason: Some("a freeze".into()) };
        journal.append(Event::Pinned { commit: commit(1), by: ada.clone() }, Now::read()).unwrap();
        journal
            .append(Event::Rejected { commit: commit(2), stage: Stage::Check }, Now::read())
            .unwrap();
        let records = journal.records().to_vec();
        drop(journal);
        let mut journal = Journal::open(&path, Now::read()).unwrap();
        assert_eq!(journal.records(), records);
        assert_eq!(journal.live(), Some(commit(1)));
        assert_eq!(journal.pinned().map(|it| (it.commit, it.by)), Some((commit(1), ada)));
        journal
            .append(Event::Resumed { by: Attribution::default(), accepts: None }, Now::read())
            .unwrap();
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
        let all = [&last, &writes[1]];
        let (now, hour) = (Now::read().wall, SignedDuration::from_hours(1));
        assert_eq!(journal.unanswered_at(now, hour), all);
        assert!(journal.unanswered_at(now + hour * 2, hour).is_empty());
        // The clock jumps ahead: the writes are as young as before.
        let (reading, day) = (Now::read(), SignedDuration::from_hours(24));
        journal.check_clock(Now { wall: reading.wall + day, ..reading });
        assert_eq!(journal.unanswered_at(now + day, hour), all);
        assert!(journal.unanswered_at(now + day + hour * 2, hour).is_empty());
        // It is set right again; what was recorded meanwhile has a later time.
        journal.append(activated(4), Now::read()).unwrap();
        assert_eq!(journal.unanswered(hour, Now::read()), all);
        assert!(journal.unanswered_at(now + hour * 2, hour).is_empty());
    }

    #[test]
    fn a_machine_that_was_suspended_did_not_set_its_clock() {
        let (mut journal, now, night) = (Journal::default(), Now::read(), Duration::from_hours(8));
        journal.append(activated(1), now).unwrap();
        let morning = now.after_suspend(night);
        journal.check_clock(morning);
        assert_eq!(journal.records().len(), 1);
        assert_eq!(journal.live_at(now.wall + night / 2, morning), Some(commit(1)));
        journal.check_clock(Now { wall: morning.wall + night, ..morning });
        assert_eq!(journal.records().len(), 2, "the clock was set");
    }

    #[test]
    fn a_large_journal_loses_what_is_old_and_not_lasting() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let mut journal = Journal::open(&path, Now::read()).unwrap();
        let answered = |digit| Event::Answered { commits: vec![commit(digit)] };
        let days = |it: u64| Duration::from_hours(24 * it);
        let begin = Now::read();
        for (event, at) in [
            (activated(1), 0),
            (answered(1), 0),
            (answered(2), 5),
            (answered(3), 6),
            (answered(4), 100),
            (activated(2), 101),
        ] {
            journal.append(event, begin.later(days(at))).unwrap();
        }
        let lasting = [activated(1), answered(4), activated(2)];
        // A clock that is ahead does not make what is new old.
        for wall in [101, 4000] {
            journal.shorten(begin.later(days(wall)));
            let events: Vec<Event> = journal.records.iter().map(|it| it.event.clone()).collect();
            assert_eq!(events, lasting);
        }
        journal.append(answered(5), begin.later(days(102))).unwrap();
        let records = journal.records.clone();
        drop(journal);
        let again = Journal::open(&path, begin.later(days(102))).unwrap();
        assert_eq!(again.records, records);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_commit_is_rejected_until_something_else_comes_of_it() {
        let mut journal = Journal::default();
        let mut note = |event: Event| {
            journal.append(event, Now::read()).unwrap();
            journal.rejected_at(commit(1))
        };
        let rejected = |digit, stage| Event::Rejected { commit: commit(digit), stage };
        assert_eq!(note(rejected(2, Stage::Check)), None);
        assert_eq!(note(rejected(1, Stage::Load)), Some(Stage::Load));
        assert_eq!(note(activated(2)), Some(Stage::Load));
        assert_eq!(note(rejected(1, Stage::Check)), Some(Stage::Check));
        assert_eq!(note(activated(1)), None);
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
    fn lines_of_unknown_events_are_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        Journal::open(&path, Now::read()).unwrap().append(activated(1), Now::read()).unwrap();
        let mut bytes = b"{\"event\": \"of a later version\"}\n\xff\xfe\n".to_vec();
        bytes.extend(std::fs::read(&path).unwrap());
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Journal::open(&path, Now::read()).unwrap().live(), Some(commit(1)));
    }
}
