//! When the branch was last seen, in a file: its age goes on across restarts.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::clock::Now;
use crate::config::{Durability, read_bounded_text, replace_file};

/// The name of the file in the data directory.
const FILE: &str = "last-contact";

/// How often at most it is written while the remote can be fetched.
const SAVED_EVERY: Duration = Duration::from_mins(1);

/// A time that differs by no more is the same.
const SAME: SignedDuration = SignedDuration::from_secs(1);

/// The file with the time of the last fetch that succeeded.
#[derive(Debug)]
pub(super) struct ContactFile {
    path: PathBuf,
    /// How often at most it is written while the remote can be fetched.
    interval: Duration,
    saved: Mutex<Option<SavedContact>>,
}

/// What this process wrote last.
#[derive(Clone, Copy, Debug)]
struct SavedContact {
    /// None where writing failed.
    time: Option<Timestamp>,
    /// When it was written.
    at: Instant,
}

impl ContactFile {
    /// Returns the file in a data directory. The shorter `max_staleness` is, the more exact it is.
    pub(super) fn new(data: &Path, max_staleness: Option<Duration>) -> Self {
        let interval = max_staleness.map_or(SAVED_EVERY, |it| SAVED_EVERY.min(it / 10));
        Self { path: data.join(FILE), interval, saved: Mutex::default() }
    }

    /// Returns the time in the file; none if it has none, such as after a power failure.
    pub(super) fn load(&self) -> Option<Timestamp> {
        read_bounded_text(&self.path).ok()?.trim().parse().ok()
    }

    /// Writes a time, if the file has another: at intervals, or now if it may be the last chance, since the
    /// remote cannot be fetched or the daemon stops.
    pub(super) fn save(&self, time: Timestamp, is_urgent: bool, now: Now) {
        let mut saved = self.saved.lock();
        let is_due = saved.is_none_or(|it| {
            let is_same = it.time.is_some_and(|saved| time.duration_since(saved).abs() <= SAME);
            !is_same && (is_urgent || now.since(it.at) >= self.interval)
        });
        if !is_due {
            return;
        }
        let written = self.write(time);
        let had_failed = saved.is_some_and(|it| it.time.is_none());
        if let Err(error) = &written
            && !had_failed
        {
            let path = self.path.display();
            tracing::warn!(%path, %error, "the time of the last fetch cannot be written");
        }
        *saved = Some(SavedContact { time: written.is_ok().then_some(time), at: now.monotonic });
    }

    /// A file that a power failure cut short is not read: it is not worth a sync.
    fn write(&self, time: Timestamp) -> io::Result<()> {
        replace_file(&self.path, format!("{time}\n").as_bytes(), Durability::Unsynced)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the time is kept in a file")]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_written_when_it_matters() {
        let directory = tempfile::tempdir().unwrap();
        let file = |limit| ContactFile::new(directory.path(), limit);
        let start = Now::read();
        let later = |seconds| start.later(Duration::from_secs(seconds));
        let hourly = file(Some(Duration::from_hours(1)));
        assert_eq!(hourly.load(), None);
        hourly.save(start.wall, false, start);
        assert_eq!(hourly.load(), Some(start.wall));
        hourly.save(later(30).wall, false, later(30));
        assert_eq!(hourly.load(), Some(start.wall), "an interval has not passed");
        hourly.save(later(30).wall, true, later(30));
        assert_eq!(hourly.load(), Some(later(30).wall), "the remote is gone");
        hourly.save(later(90).wall, false, later(90));
        assert_eq!(hourly.load(), Some(later(90).wall));
        let short = file(Some(Duration::from_secs(10)));
        short.save(start.wall, false, start);
        short.save(later(2).wall, false, later(2));
        assert_eq!(short.load(), Some(later(2).wall), "a short limit needs an exact time");
    }

    #[test]
    fn a_file_that_cannot_be_read_or_written_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let file = ContactFile::new(directory.path(), None);
        let now = Now::read();
        std::fs::write(directory.path().join(FILE), "2026-11-2").unwrap();
        assert_eq!(file.load(), None);
        let gone = directory.path().join("gone");
        let lost = ContactFile::new(&gone, None);
        lost.save(now.wall, true, now);
        assert_eq!(lost.load(), None);
        std::fs::create_dir(&gone).unwrap();
        lost.save(now.wall, true, now);
        assert_eq!(lost.load(), Some(now.wall), "it is tried again");
    }
}
