//! The file of the journal: whole lines, and on disk before they count.
#![expect(clippy::disallowed_methods, reason = "the journal is a file")]

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// An open journal file.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    file: Handle,
    /// How many bytes of it are whole lines on disk.
    length: u64,
}

/// How the file is open.
#[derive(Debug)]
enum Handle {
    /// For writing.
    Writable(File),
    /// For reading, since the directory or the file was read-only.
    ReadOnly(File),
    /// Not at all: it was not there and could not be created.
    Missing,
}

/// Where the open file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// At its path.
    Here,
    /// Its path has no file any more: it was deleted or moved away, maybe with its directory.
    Gone,
}

/// More room than any record needs that an operator waits for.
const ROOM: usize = 4096;

impl JournalFile {
    /// Opens the file or creates it, and returns its whole lines; a line cut short is dropped. Where
    /// nothing can be written, it is read, and opened for writing as soon as that works.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Vec<u8>)> {
        let (mut file, is_writable) = match options().truncate(false).open(path) {
            Ok(file) => (file, true),
            Err(error) if is_read_only(&error) => match File::open(path) {
                Ok(file) => (file, false),
                Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
                    let file = Self { path: path.to_owned(), file: Handle::Missing, length: 0 };
                    return Ok((file, Vec::new()));
                }
                Err(error) => return Err(error),
            },
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        bytes.truncate(whole);
        let length = whole as u64;
        if is_writable {
            if file.metadata()?.len() != length {
                file.set_len(length)?;
                file.sync_data()?;
            }
            sync_directory(path)?;
        }
        let file = if is_writable { Handle::Writable(file) } else { Handle::ReadOnly(file) };
        Ok((Self { path: path.to_owned(), file, length }, bytes))
    }

    /// Returns where the open file is, and has it open for writing.
    ///
    /// # Errors
    ///
    /// Returns an error if another file is at its path, or another process wrote to it: neither may
    /// be overwritten. Returns one as well if it cannot be opened for writing.
    pub(super) fn whereabouts(&mut self) -> io::Result<Whereabouts> {
        let found = match std::fs::metadata(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Whereabouts::Gone),
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
        // What a failed write left behind may follow.
        if !is_same(&found, &own) || (found.len() != self.length && !self.is_own_rest(&found)) {
            return Err(changed());
        }
        if let Handle::ReadOnly(_) = self.file {
            let file = options().create(false).open(&self.path)?;
            if !is_same(&file.metadata()?, &own) {
                return Err(changed());
            }
            self.file = Handle::Writable(file);
        }
        Ok(Whereabouts::Here)
    }

    /// Returns whether what stands behind the whole lines is at most the start of one: a failed write
    /// that could not be taken back.
    fn is_own_rest(&self, found: &Metadata) -> bool {
        let mut rest = Vec::new();
        let mut file = match &self.file {
            Handle::Writable(file) | Handle::ReadOnly(file) => file,
            Handle::Missing => return false,
        };
        let read = file
            .seek(SeekFrom::Start(self.length))
            .and_then(|_| file.take(ROOM as u64).read_to_end(&mut rest));
        found.len() > self.length && read.is_ok() && !rest.contains(&b'\n')
    }

    fn writable(&self) -> io::Result<&File> {
        match &self.file {
            Handle::Writable(file) => Ok(file),
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
        let mut file = self.writable()?;
        file.set_len(self.length)?;
        file.seek(SeekFrom::Start(self.length))?;
        file.write_all(lines)
    }

    /// Finds out whether a record could be written, and leaves nothing behind.
    pub(super) fn probe(&self) -> io::Result<()> {
        let file = self.writable()?;
        let written = self.write_at_end(&[b' '; ROOM]).and_then(|()| file.sync_data());
        file.set_len(self.length)?;
        written
    }

    /// Writes all lines to a new file at the path, with the directory if that is gone as well.
    pub(super) fn recreate(&mut self, lines: &[u8]) -> io::Result<()> {
        if let Some(directory) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            sync_directory(directory)?;
        }
        let fresh = self.path.with_extension("new");
        let mut file = options().truncate(true).open(&fresh)?;
        file.write_all(lines)?;
        file.sync_data()?;
        std::fs::rename(&fresh, &self.path)?;
        sync_directory(&self.path)?;
        self.file = Handle::Writable(file);
        self.length = lines.len() as u64;
        Ok(())
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).mode(0o600);
    options
}

/// Returns whether a file system or its permissions do not let us write.
fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Has the directory of a file know the file after a power failure.
fn sync_directory(of: &Path) -> io::Result<()> {
    match of.parent().filter(|it| !it.as_os_str().is_empty()) {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_deleted_is_noticed_and_written_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data/journal");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let (mut journal, _) = JournalFile::open(&path).unwrap();
        journal.append(b"one\n").unwrap();
        assert_eq!(journal.whereabouts().unwrap(), Whereabouts::Here);
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        assert_eq!(journal.whereabouts().unwrap(), Whereabouts::Gone);
        journal.recreate(b"one\ntwo\n").unwrap();
        assert_eq!(journal.whereabouts().unwrap(), Whereabouts::Here);
        journal.append(b"three\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\nthree\n");
    }

    #[test]
    fn a_file_of_another_process_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let (mut journal, _) = JournalFile::open(&path).unwrap();
        journal.append(b"one\n").unwrap();
        let (mut other, _) = JournalFile::open(&path).unwrap();
        other.append(b"other\n").unwrap();
        assert!(journal.whereabouts().is_err());
        std::fs::write(path.with_extension("new"), b"new\n").unwrap();
        std::fs::rename(path.with_extension("new"), &path).unwrap();
        assert!(journal.whereabouts().is_err());
    }

    #[test]
    fn a_probe_leaves_nothing_and_the_rest_of_a_failed_write_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let (mut journal, _) = JournalFile::open(&path).unwrap();
        journal.append(b"one\n").unwrap();
        journal.probe().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\n");
        std::fs::write(&path, b"one\nhal").unwrap();
        assert_eq!(journal.whereabouts().unwrap(), Whereabouts::Here);
        journal.append(b"two\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
    }
}
