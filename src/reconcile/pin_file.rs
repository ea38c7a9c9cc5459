//! The last pin or resume, in a file beside the journal, for when the journal is lost.
//!
//! A pin keeps machines as they are: a journal that was emptied, deleted, damaged or replaced by an older one must not end it
//! unasked, nor begin one again that was ended. The file is written after the journal: what it says and the journal does
//! not is lost there.

use std::io;
use std::path::{Path, PathBuf};

use super::journal::Record;
use crate::config::{Durability, read_bounded_text, replace_file};

/// The name of the file in the data directory.
const FILE: &str = "journal-pin";

/// The file with the last pin or resume: the line that the journal has of it.
#[derive(Debug)]
pub(super) struct PinFile {
    path: PathBuf,
}

impl PinFile {
    /// Returns the file in a data directory.
    pub(super) fn new(data: &Path) -> Self {
        Self { path: data.join(FILE) }
    }

    /// Returns what the file says; none if there is no such file, or it is damaged.
    pub(super) fn load(&self) -> Option<Record> {
        let text = read_bounded_text(&self.path).ok()?;
        serde_json::from_str(&text).ok().filter(|it: &Record| it.event.is_of_pins())
    }

    /// Writes the last pin or resume. The journal has it already, so a failure is only logged.
    pub(super) fn save(&self, record: Option<&Record>) {
        let Some(record) = record.filter(|it| self.load().as_ref() != Some(*it)) else { return };
        if let Err(error) = self.write(record) {
            let path = self.path.display();
            tracing::warn!(%path, %error, "the copy of the pin for a lost journal cannot be written");
        }
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
        let other = Record { time, event: Event::Fetched { commit } };
        std::fs::write(directory.path().join(FILE), serde_json::to_string(&other).unwrap())
            .unwrap();
        assert_eq!(file.load(), None);
    }
}
