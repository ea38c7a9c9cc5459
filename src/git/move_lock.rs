//! Locks of a repository in place: files that one process creates, and that say which move of a branch it makes.
//!
//! A lock that a killed process left is so told from one that is held, and what that process left is put right.
#![expect(clippy::disallowed_methods, reason = "locks are files")]

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::failure::{FetchError, FetchFailure};
use crate::model::CommitId;

/// What our locks begin with; those of git are empty or an index.
const MARK: &str = "clade";

/// More bytes than one of our locks has: a mark, a ref and two commits.
const LONGEST: u64 = 4096;

/// How often a lock that another process holds is tried, and how long it takes until the next time: git mostly holds
/// it for milliseconds.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// From which commit to which a branch is moved; one that is new is moved from where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Move {
    pub(super) branch: String,
    pub(super) from: CommitId,
    pub(super) to: CommitId,
}

/// A lock, until it is dropped.
#[derive(Debug)]
pub(super) struct MoveLock {
    path: PathBuf,
    /// Locked as well: the lock of a killed process is not.
    _file: File,
}

impl MoveLock {
    /// Creates the file. Waits a second for another process.
    ///
    /// # Errors
    ///
    /// Returns an error that names the file if another process has it, or it cannot be written.
    pub(super) fn take(path: PathBuf, way: &Move) -> Result<Self, FetchError> {
        let mut tries = 1;
        loop {
            match Self::create(&path, way) {
                Ok(file) => return Ok(Self { path, _file: file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(failed(&path, &error)),
            }
        }
    }

    fn create(path: &Path, way: &Move) -> io::Result<File> {
        let directory = path.parent().unwrap_or(Path::new("."));
        // It appears with its text: one without would not be known as ours after a kill.
        let mut new = tempfile::Builder::new().prefix("clade-lock-").tempfile_in(directory)?;
        new.as_file().try_lock()?;
        writeln!(new, "{MARK} {} {} {}", way.branch, way.from, way.to)?;
        new.as_file().sync_data()?;
        new.persist_noclobber(path).map_err(|it| it.error)
    }

    /// Takes the lock over that a process of ours left when it was killed, and returns what it was about to do.
    pub(super) fn take_over(path: &Path) -> Option<(Self, Move)> {
        let (file, text) = read_lock(path)?;
        let mut words = text.strip_suffix('\n')?.split(' ');
        if words.next() != Some(MARK) {
            return None;
        }
        let branch = words.next().filter(|it| git2::Reference::is_valid_name(it))?.to_owned();
        let (from, to) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        file.try_lock().ok()?;
        // The process that held it may have ended well since it was opened, and another one taken the lock.
        let is_it = identity(&file.metadata().ok()?) == identity(&path.metadata().ok()?);
        is_it.then_some((Self { path: path.to_owned(), _file: file }, Move { branch, from, to }))
    }

    /// Returns whether a lock is there that a process of ours took.
    pub(super) fn is_ours(path: &Path) -> bool {
        read_lock(path).is_some_and(|(_, text)| text.starts_with(MARK))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for MoveLock {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::error!(%error, path = %self.path.display(), "a lock is not removed");
        }
    }
}

impl Move {
    /// Removes the lock of the branch that a killed process left when it made this move.
    pub(super) fn remove_ref_lock(&self, common: &Path) {
        /// Longer than another process needs to write to a lock that it has.
        const LONG: Duration = Duration::from_secs(1);
        let path = common.join(format!("{}.lock", self.branch));
        let read = || {
            let (file, text) = read_lock(&path)?;
            Some((text, identity(&file.metadata().ok()?)))
        };
        let Some((text, id)) = read() else { return };
        let is_ours = match text.trim_end() {
            "" => {
                std::thread::sleep(LONG);
                read() == Some((text, id))
            }
            // No other process knows the commit.
            commit => commit == self.to.to_string(),
        };
        if is_ours {
            tracing::warn!(path = %path.display(), "a write was cut off: its lock is removed");
            fs::remove_file(path).ok();
        }
    }
}

/// Opens a lock and reads the beginning of its text; none of what is not a file: opening a pipe would wait for a writer.
fn read_lock(path: &Path) -> Option<(File, String)> {
    path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    let file = File::open(path).ok()?;
    let mut text = String::new();
    (&file).take(LONGEST).read_to_string(&mut text).ok()?;
    Some((file, text))
}

/// Returns whether no process has a lock, now or within a second.
pub(super) fn is_released(path: &Path) -> bool {
    for _ in 0..TRIES {
        if !path.exists() {
            return true;
        }
        std::thread::sleep(PAUSE);
    }
    false
}

fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn failed(path: &Path, error: &io::Error) -> FetchError {
    if error.kind() != io::ErrorKind::AlreadyExists {
        return FetchError::of_file(path, "written", error);
    }
    let path = path.display();
    let message =
        format!("another process writes to the repository; if none runs, remove `{path}`");
    FetchError::new(FetchFailure::LockHeld, message)
}
