//! The pin, in a file beside the journal, for when the journal is lost.
//!
//! A pin keeps machines as they are: a journal that was emptied, deleted or replaced by an older one must not end it
//! unasked. The journal decides wherever it has the pin or something newer.
#![expect(clippy::disallowed_methods, reason = "the pin is kept in a file")]

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::attribution::Pin;
use super::journal::{Event, Record};
use crate::config::{create_private_file, read_bounded_text};

/// The name of the file in the data directory.
const FILE: &str = "journal-pin";

/// The file with the pin: the line that the journal has of it.
#[derive(Debug)]
pub(super) struct PinFile {
    path: PathBuf,
}

impl PinFile {
    /// Returns the file in a data directory.
    pub(super) fn new(data: &Path) -> Self {
        Self { path: data.join(FILE) }
    }

    /// Returns the pin in the file; none if there is no such file, or it is damaged.
    pub(super) fn load(&self) -> Option<Pin> {
        let text = read_bounded_text(&self.path).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        match record.event {
            Event::Pinned { commit, by } => Some(Pin { commit, since: record.time, by }),
            _ => None,
        }
    }

    /// Writes the pin, or removes the file where there is none. The journal has it already, so a failure is only logged.
    pub(super) fn save(&self, pin: Option<&Pin>) {
        let written = match pin {
            Some(_) if self.load().as_ref() == pin => Ok(()),
            Some(pin) => self.write(pin),
            None => self.remove(),
        };
        if let Err(error) = written {
            let path = self.path.display();
            tracing::warn!(%path, %error, "the copy of the pin for a lost journal cannot be written");
        }
    }

    fn write(&self, pin: &Pin) -> io::Result<()> {
        let fresh = self.path.with_extension("new");
        let event = Event::Pinned { commit: pin.commit, by: pin.by.clone() };
        let mut file = create_private_file(&fresh)?;
        serde_json::to_writer(&file, &Record { time: pin.since, event })?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        std::fs::rename(&fresh, &self.path)?;
        self.sync_directory()
    }

    fn remove(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.and_then(|()| self.sync_directory()),
        }
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.path.parent().map_or(Ok(()), |it| File::open(it)?.sync_all())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CommitId;
    use crate::reconcile::attribution::Attribution;

    #[test]
    fn a_pin_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let file = PinFile::new(directory.path());
        assert_eq!(file.load(), None);
        file.save(None);
        let by = Attribution { actor: Some("ada".into()), reason: Some("a \"freeze\"".into()) };
        let since = "2026-11-28T02:10:00.123456789Z".parse().unwrap();
        let pin = Pin { commit: CommitId::from_bytes([7; 20]), since, by };
        file.save(Some(&pin));
        assert_eq!(file.load(), Some(pin.clone()));
        std::fs::write(directory.path().join(FILE), "{\"time\":").unwrap();
        assert_eq!(file.load(), None, "a damaged one");
        file.save(Some(&pin));
        assert_eq!(file.load(), Some(pin), "it is written again");
        file.save(None);
        assert_eq!(file.load(), None);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
