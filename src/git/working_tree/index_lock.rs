//! The lock of an index, as git takes it: a file beside it that only one process creates.
#![expect(clippy::disallowed_methods, reason = "an index and its lock are files")]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::CommitId;

/// What our locks begin with; those of git are empty or an index.
const MARK: &str = "clade";

/// How long one of our locks is: a mark, a ref and two commits.
const LONGEST: u64 = 4096;

/// How often a lock that another process holds is tried, and how long it takes until the next time: git mostly holds
/// it for milliseconds.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// From which commit to which a branch is moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::git) struct Move {
    pub(in crate::git) branch: String,
    pub(in crate::git) from: CommitId,
    pub(in crate::git) to: CommitId,
}

/// The lock, until it is dropped.
#[derive(Debug)]
pub(super) struct IndexLock {
    path: PathBuf,
    /// Locked as well, so that a lock that a killed process left is told from one that is held.
    _file: File,
}

impl IndexLock {
    /// Locks the index in a directory of git. Waits a second for another process.
    ///
    /// # Errors
    ///
    /// Returns an error of the kind `AlreadyExists` if another process has it.
    pub(super) fn take(directory: &Path, way: &Move) -> io::Result<Self> {
        let mut tries = 1;
        loop {
            match Self::create(directory, way) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(PAUSE);
                }
                done => return done,
            }
        }
    }

    fn create(directory: &Path, way: &Move) -> io::Result<Self> {
        let path = directory.join("index.lock");
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        let lock = |file: &mut File| {
            file.try_lock()?;
            writeln!(file, "{MARK} {} {} {}", way.branch, way.from, way.to)
        };
        if let Err(error) = lock(&mut file) {
            fs::remove_file(path).ok();
            return Err(error);
        }
        Ok(Self { path, _file: file })
    }

    /// Takes the lock over that a process of ours left when it was killed, and returns what it was about to do.
    pub(super) fn take_over(directory: &Path) -> Option<(Self, Move)> {
        let path = directory.join("index.lock");
        let mut file = File::open(&path).ok()?;
        let mut text = String::new();
        (&mut file).take(LONGEST).read_to_string(&mut text).ok()?;
        let mut words = text.strip_suffix('\n')?.split(' ');
        if words.next() != Some(MARK) {
            return None;
        }
        let branch = words.next()?.to_owned();
        let (from, to) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        file.try_lock().ok()?;
        // The process that held it may have ended well since it was opened, and another one taken the lock.
        let (own, found) = (file.metadata().ok()?, path.metadata().ok()?);
        let is_it = (own.dev(), own.ino()) == (found.dev(), found.ino());
        is_it.then_some((Self { path, _file: file }, Move { branch, from, to }))
    }

    /// Copies the index, for changes.
    pub(super) fn copy_index(&self) -> io::Result<PathBuf> {
        let copy = self.path.with_file_name("index.clade");
        match fs::copy(self.index(), &copy) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::remove_file(&copy).or_else(|it| match it.kind() {
                    io::ErrorKind::NotFound => Ok(()),
                    _ => Err(it),
                })?;
            }
            copied => _ = copied?,
        }
        Ok(copy)
    }

    /// Puts a changed copy in the place of the index.
    pub(super) fn replace_index(&self, copy: &Path) -> io::Result<()> {
        fs::rename(copy, self.index())
    }

    fn index(&self) -> PathBuf {
        self.path.with_file_name("index")
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::error!(%error, path = %self.path.display(), "the lock of an index is not removed");
        }
    }
}
