//! The file operations of the journal, so that a simulation can fail each of them.
#![expect(clippy::disallowed_methods, reason = "the journal is a file")]

use std::fmt::Debug;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// A file system with the operations that the journal needs.
pub(in crate::reconcile) trait Disk: Debug + Send {
    /// Opens a file.
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>>;

    /// Returns what is at a path.
    fn metadata(&self, path: &Path) -> io::Result<FileMetadata>;

    /// Creates a directory with its parents, for its owner alone.
    fn create_directory(&self, path: &Path) -> io::Result<()>;

    /// Makes the entries of a directory survive a power failure.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;

    /// Gives a file another name, in place of the file that has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
}

/// An open file.
pub(in crate::reconcile) trait DiskFile: Debug + Send {
    /// Returns its identity and length.
    fn metadata(&self) -> io::Result<FileMetadata>;

    /// Returns at most `limit` bytes from an offset on.
    fn read_at(&self, offset: u64, limit: u64) -> io::Result<Vec<u8>>;

    /// Writes bytes at an offset; after an error some of them may be there.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts it off or fills it up with zeros.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Makes its content survive a power failure.
    fn sync_data(&self) -> io::Result<()>;
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reconcile) enum Access {
    /// For reading.
    Read,
    /// For reading and writing; the file must exist.
    Write,
    /// For reading and writing; created for its owner alone if it does not exist.
    Create,
    /// The same, and emptied.
    Truncate,
}

/// Which file something is, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reconcile) struct FileMetadata {
    /// Device and inode.
    pub(in crate::reconcile) identity: (u64, u64),
    /// In bytes.
    pub(in crate::reconcile) length: u64,
}

impl FileMetadata {
    fn of(metadata: &Metadata) -> Self {
        Self { identity: (metadata.dev(), metadata.ino()), length: metadata.len() }
    }
}

/// The file system of this machine.
#[derive(Debug)]
pub(super) struct OsDisk;

impl Disk for OsDisk {
    fn open(&self, path: &Path, access: Access) -> io::Result<Box<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).mode(0o600);
        match access {
            Access::Read => {}
            Access::Write => _ = options.write(true),
            Access::Create => _ = options.write(true).create(true),
            Access::Truncate => _ = options.write(true).create(true).truncate(true),
        }
        // Who opens a pipe may wait for ever.
        if std::fs::metadata(path).is_ok_and(|it| !it.is_file()) {
            let message = format!("`{}` is not a regular file: remove it", path.display());
            return Err(io::Error::other(message));
        }
        Ok(Box::new(options.open(path)?))
    }

    fn metadata(&self, path: &Path) -> io::Result<FileMetadata> {
        std::fs::metadata(path).map(|it| FileMetadata::of(&it))
    }

    fn create_directory(&self, path: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }
}

impl DiskFile for File {
    fn metadata(&self) -> io::Result<FileMetadata> {
        Self::metadata(self).map(|it| FileMetadata::of(&it))
    }

    fn read_at(&self, offset: u64, limit: u64) -> io::Result<Vec<u8>> {
        let mut file = self;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(offset))?;
        file.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        Self::set_len(self, length)
    }

    fn sync_data(&self) -> io::Result<()> {
        Self::sync_data(self)
    }
}
