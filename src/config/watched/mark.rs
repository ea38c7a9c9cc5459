//! What tells one state of a file from another.
#![expect(clippy::disallowed_methods, reason = "watched files are read")]

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The largest file that is read.
const LIMIT: u64 = 64 << 20;

/// One state of a file. The change time moves with every write, and nothing sets it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    /// When the file was made, where the file system knows: a new file may get the number of a removed one.
    made: Option<SystemTime>,
}

impl Mark {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let found = std::fs::metadata(path)?;
        // Who opens a pipe may wait for ever.
        if !found.is_file() && !found.is_dir() {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(Self::from(&found))
    }

    /// Returns whether both are states of one file, which was changed in place.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode, self.made) == (other.device, other.inode, other.made)
    }

    /// Returns how long ago the file changed; none if that is in the future.
    pub(super) fn age(&self) -> Option<Duration> {
        let (seconds, nanoseconds) = self.changed;
        let since = Duration::new(seconds.try_into().ok()?, nanoseconds.try_into().ok()?);
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + since).ok()
    }

    /// Reads the file, if it is in this state before and after.
    pub(super) fn read(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        if self.size > LIMIT {
            return Err(io::Error::other(format!("it is larger than {LIMIT} bytes")));
        }
        let mut file = File::open(path)?;
        let mut bytes = Vec::new();
        if Self::from(&file.metadata()?) != *self {
            return Ok(None);
        }
        file.by_ref().take(LIMIT).read_to_end(&mut bytes)?;
        Ok((Self::from(&file.metadata()?) == *self).then_some(bytes))
    }
}

impl From<&Metadata> for Mark {
    fn from(it: &Metadata) -> Self {
        Self {
            device: it.dev(),
            inode: it.ino(),
            size: it.size(),
            modified: (it.mtime(), it.mtime_nsec()),
            changed: (it.ctime(), it.ctime_nsec()),
            made: it.created().ok(),
        }
    }
}
