//! The file of the journal: whole lines, and on disk before they count.

use std::io;
use std::path::{Path, PathBuf};

use super::disk::{Access, Disk, DiskFile, FileMetadata};

/// An open journal file.
#[derive(Debug)]
pub(super) struct JournalFile {
    disk: Box<dyn Disk>,
    path: PathBuf,
    file: Handle,
    /// How many bytes of it are whole lines on disk.
    length: u64,
    /// Whether the disk failed to sync what was read: a kernel reports that once.
    is_unsynced: bool,
}

/// How the file is open.
#[derive(Debug)]
enum Handle {
    /// For writing.
    Writable(Box<dyn DiskFile>),
    /// For reading, since the directory or the file was read-only.
    ReadOnly(Box<dyn DiskFile>),
    /// Not at all: it was not there and could not be created.
    Missing,
}

/// Where the open file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// At its path.
    InPlace,
    /// At its path, and maybe not all of it on disk.
    Unsynced,
    /// Its path has no file any more: it was deleted or moved away, maybe with its directory.
    Gone,
}

/// The largest journal that is read; it is made shorter at a start long before.
const MOST: u64 = 256 << 20;

/// More room than any record needs that an operator waits for.
const ROOM: u16 = 4096;

impl JournalFile {
    /// Opens the file or creates it, and returns its whole lines; a line cut short is dropped. Where
    /// nothing can be written, it is read, and opened for writing as soon as that works.
    pub(super) fn open(disk: Box<dyn Disk>, path: &Path) -> io::Result<(Self, Vec<u8>)> {
        let path = path.to_owned();
        let (file, is_writable) = match disk.open(&path, Access::Create) {
            Ok(file) => (file, true),
            Err(error) if is_read_only(&error) => match disk.open(&path, Access::Read) {
                Ok(file) => (file, false),
                Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
                    let file =
                        Self { disk, path, file: Handle::Missing, length: 0, is_unsynced: false };
                    return Ok((file, Vec::new()));
                }
                Err(error) => return Err(error),
            },
            Err(error) => return Err(error),
        };
        let length = file.metadata()?.length;
        if length > MOST {
            let message = format!("it has {length} bytes, {MOST} are allowed: move it away");
            return Err(io::Error::other(message));
        }
        let mut bytes = file.read_at(0, MOST)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        bytes.truncate(whole);
        let length = whole as u64;
        if is_writable {
            if file.metadata()?.length != length {
                file.set_len(length)?;
            }
            sync_directory(disk.as_ref(), &path)?;
        }
        // A kill may have come between a write and its sync: what is read here must survive. Where the
        // disk fails, the daemon starts all the same, and the next write writes everything again.
        let is_unsynced = is_writable && file.sync_data().is_err();
        let file = if is_writable { Handle::Writable(file) } else { Handle::ReadOnly(file) };
        Ok((Self { disk, path, file, length, is_unsynced }, bytes))
    }

    /// Returns where the open file is, and opens it for writing if it is not yet.
    ///
    /// # Errors
    ///
    /// Returns an error if another file is at its path, or another process wrote to it: neither may
    /// be overwritten. Returns one as well if it cannot be opened for writing.
    pub(super) fn location(&mut self) -> io::Result<Location> {
        let found = match self.disk.metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Location::Gone),
            Err(error) => return Err(error),
        };
        let changed = || {
            let message = "another process replaced or changed it; restart the daemon";
            io::Error::other(message)
        };
        let own = match &self.file {
            Handle::Writable(file) | Handle::ReadOnly(file) => file.metadata()?,
            Handle::Missing => return Err(changed()),
        };
        // The rest of a failed write may follow.
        let is_own = found.length == self.length || self.is_own_rest(found);
        if found.identity != own.identity || !is_own {
            return Err(changed());
        }
        if let Handle::ReadOnly(_) = self.file {
            let file = self.disk.open(&self.path, Access::Write)?;
            if file.metadata()?.identity != own.identity {
                return Err(changed());
            }
            self.file = Handle::Writable(file);
        }
        if self.is_unsynced {
            return Ok(Location::Unsynced);
        }
        Ok(Location::InPlace)
    }

    /// Returns whether the bytes after the whole lines are at most the start of a line: a failed write
    /// that could not be taken back.
    fn is_own_rest(&self, found: FileMetadata) -> bool {
        let (Handle::Writable(file) | Handle::ReadOnly(file)) = &self.file else { return false };
        let rest = file.read_at(self.length, ROOM.into());
        found.length > self.length && rest.is_ok_and(|it| !it.contains(&b'\n'))
    }

    fn writable(&self) -> io::Result<&dyn DiskFile> {
        match &self.file {
            Handle::Writable(file) => Ok(file.as_ref()),
            Handle::ReadOnly(_) | Handle::Missing => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
        }
    }

    /// Appends whole lines; they are on disk when this returns.
    ///
    /// # Errors
    ///
    /// Returns an error if they are not; the file is then as it was.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let file = self.writable()?;
        if let Err(error) = self.write_at_end(lines).and_then(|()| file.sync_data()) {
            // Where even this fails, the next write or the next start drops the rest.
            file.set_len(self.length).ok();
            return Err(error);
        }
        self.length += lines.len() as u64;
        Ok(())
    }

    fn write_at_end(&self, lines: &[u8]) -> io::Result<()> {
        let file = self.writable()?;
        file.set_len(self.length)?;
        file.write_at(self.length, lines)
    }

    /// Returns an error if a record could not be written now; leaves the file as it was.
    pub(super) fn probe(&self) -> io::Result<()> {
        let file = self.writable()?;
        let written = self.write_at_end(&[b' '; ROOM as usize]).and_then(|()| file.sync_data());
        file.set_len(self.length)?;
        written
    }

    /// Writes all lines to a new file at the path, with the directory if that is gone as well.
    pub(super) fn recreate(&mut self, lines: &[u8]) -> io::Result<()> {
        if let Some(directory) = self.path.parent() {
            self.disk.create_directory(directory)?;
            sync_directory(self.disk.as_ref(), directory)?;
        }
        let fresh = self.path.with_extension("new");
        let file = self.disk.open(&fresh, Access::Truncate)?;
        file.write_at(0, lines)?;
        file.sync_data()?;
        self.disk.rename(&fresh, &self.path)?;
        sync_directory(self.disk.as_ref(), &self.path)?;
        self.file = Handle::Writable(file);
        self.length = lines.len() as u64;
        self.is_unsynced = false;
        Ok(())
    }
}

/// Returns whether a file system or its permissions do not let us write.
fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

/// Makes the directory of a file keep its entry through a power failure.
fn sync_directory(disk: &dyn Disk, of: &Path) -> io::Result<()> {
    match of.parent().filter(|it| !it.as_os_str().is_empty()) {
        Some(directory) => disk.sync_directory(directory),
        None => Ok(()),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests read and damage the file")]
mod tests {
    use super::*;
    use crate::reconcile::journal::disk::OsDisk;

    #[test]
    fn a_file_that_was_deleted_is_noticed_and_written_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data/journal");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let (mut journal, _) = JournalFile::open(Box::new(OsDisk), &path).unwrap();
        journal.append(b"one\n").unwrap();
        assert_eq!(journal.location().unwrap(), Location::InPlace);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        assert_eq!(journal.location().unwrap(), Location::Gone);
        journal.recreate(b"one\ntwo\n").unwrap();
        assert_eq!(journal.location().unwrap(), Location::InPlace);
        journal.append(b"three\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\nthree\n");
    }

    #[test]
    fn a_file_of_another_process_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let (mut journal, _) = JournalFile::open(Box::new(OsDisk), &path).unwrap();
        journal.append(b"one\n").unwrap();
        let (mut other, _) = JournalFile::open(Box::new(OsDisk), &path).unwrap();
        other.append(b"other\n").unwrap();
        assert!(journal.location().is_err());
        std::fs::write(path.with_extension("new"), b"new\n").unwrap();
        std::fs::rename(path.with_extension("new"), &path).unwrap();
        assert!(journal.location().is_err());
    }

    #[test]
    fn a_probe_leaves_nothing_and_the_rest_of_a_failed_write_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let (mut journal, _) = JournalFile::open(Box::new(OsDisk), &path).unwrap();
        journal.append(b"one\n").unwrap();
        journal.probe().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\n");
        std::fs::write(&path, b"one\nhal").unwrap();
        assert_eq!(journal.location().unwrap(), Location::InPlace);
        journal.append(b"two\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
    }
}
