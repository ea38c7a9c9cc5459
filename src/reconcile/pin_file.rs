//! The last pin or resume, in a file beside the journal, for when the journal is lost.
//!
//! A pin keeps machines as they are: a journal that was emptied, deleted, damaged or replaced by an older one must not end it
//! unasked, nor begin one again that was ended. The file is written after the journal: what it says and the journal does
//! not is lost there.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::journal::Record;
use crate::config::{Durability, read_bounded_text, replace_file};

/// The name of the file in the data directory.
const FILE: &str = "journal-pin";

/// The file with the last pin or resume: the line that the journal has of it.
#[derive(Debug)]
pub(super) struct PinFile {
    path: PathBuf,
    /// Whether it could not be written.
    is_due: AtomicBool,
    /// Held while the last decision is read and written: of two threads, the one that writes last has the newer one.
    saving: Mutex<()>,
}

impl PinFile {
    /// Returns the file in a data directory.
    pub(super) fn new(data: &Path) -> Self {
        let (is_due, saving) = (AtomicBool::new(false), Mutex::default());
        Self { path: data.join(FILE), is_due, saving }
    }

    /// Returns what the file says; none if there is no such file, or it is damaged.
    pub(super) fn load(&self) -> Option<Record> {
        let text = read_bounded_text(&self.path).ok()?;
        serde_json::from_str(&text).ok().filter(|it: &Record| it.event.is_of_pins())
    }

    /// Writes the last pin or resume, as `last` has it from the journal. The journal has it already, so a failure is only
    /// logged, and tried again.
    pub(super) fn save_last(&self, last: impl FnOnce() -> Option<Record>) {
        let _saving = self.saving.lock();
        self.save(last().as_ref());
    }

    fn save(&self, record: Option<&Record>) {
        let Some(record) = record.filter(|it| self.load().as_ref() != Some(*it)) else { return };
        let written = self.write(record);
        let was_due = self.is_due.swap(written.is_err(), Ordering::Relaxed);
        let path = self.path.display();
        match written {
            Err(error) if !was_due => {
                tracing::warn!(%path, %error, "the copy of the pin for a lost journal cannot be written; retrying");
            }
            Ok(()) if was_due => {
                tracing::info!(%path, "the copy of the pin for a lost journal is written");
            }
            _ => {}
        }
    }

    /// Returns whether it could not be written.
    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    fn write(&self, record: &Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        replace_file(&self.path, &line, Durability::Synced)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the pin is kept in a file")]
mod tests {
    use super::*;
    use crate::model::CommitId;
    use crate::reconcile::attribution::Attribution;
    use crate::reconcile::journal::Event;

    #[test]
    fn a_pin_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let file = PinFile::new(directory.path());
        assert_eq!(file.load(), None);
        file.save(None);
        let by = Attribution { actor: Some("ada".into()), reason: Some("a \"freeze\"".into()) };
        let time = "2026-11-28T02:10:00.123456789Z".parse().unwrap();
        let commit = CommitId::from_bytes([7; 20]);
        let pin = Record { time, event: Event::Pinned { commit, by: by.clone() } };
        let resume = Record { time, event: Event::Resumed { by, accepts: Some(commit) } };
        for record in [pin, resume] {
            file.save(Some(&record));
            assert_eq!(file.load(), Some(record.clone()));
            file.save(None);
            assert_eq!(file.load(), Some(record.clone()));
            std::fs::write(directory.path().join(FILE), "{\"time\":").unwrap();
            assert_eq!(file.load(), None, "a damaged one");
            file.save(Some(&record));
            assert_eq!(file.load(), Some(record), "it is written again");
        }
        // Where it cannot be written, that is due until it can.
        let gone = PinFile::new(&directory.path().join("gone"));
        gone.save(file.load().as_ref());
        assert!(gone.is_due() && !file.is_due());
        std::fs::create_dir(directory.path().join("gone")).unwrap();
        gone.save(file.load().as_ref());
        assert_eq!((gone.is_due(), gone.load()), (false, file.load()));
        let other = Record { time, event: Event::Fetched { commit } };
        std::fs::write(directory.path().join(FILE), serde_json::to_string(&other).unwrap())
            .unwrap();
        assert_eq!(file.load(), None);
    }
}
