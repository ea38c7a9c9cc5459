//! Locks of a repository in place: files that one process creates, and that say which move of a branch it makes.
//!
//! A lock that a killed process left is so told from one that is held, and what that process left is put right.
#![expect(clippy::disallowed_methods, reason = "locks are files")]

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{NamedTempFile, PersistError};

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

/// What the name of a lock begins with until it is put in its place.
const NEW: &str = "clade-lock-";

/// How old such a file is at least before it is taken for one that was left: its process locks it in less.
const LEFT: Duration = Duration::from_mins(1);

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
        // It appears with its text: one without would not be known as ours after a kill.
        let written = Self::write(directory_of(&path), way);
        let mut new = written.map_err(|error| FetchError::of_file(&path, "written", &error))?;
        let mut tries = 1;
        loop {
            new = match new.persist_noclobber(&path) {
                Ok(file) => return Ok(Self { path, _file: file }),
                Err(PersistError { error, file })
                    if error.kind() == io::ErrorKind::AlreadyExists && tries < TRIES =>
                {
                    tries += 1;
                    std::thread::sleep(PAUSE);
                    file
                }
                Err(PersistError { error, .. }) => return Err(failed(&path, &error)),
            }
        }
    }

    /// Writes a lock beside its place.
    fn write(directory: &Path, way: &Move) -> io::Result<NamedTempFile> {
        let mut new = tempfile::Builder::new().prefix(NEW).tempfile_in(directory)?;
        new.as_file().try_lock()?;
        writeln!(new, "{MARK} {} {} {}", way.branch, way.from, way.to)?;
        new.as_file().sync_data()?;
        Ok(new)
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

    /// Removes what killed processes left beside the place of a lock that they were about to take.
    pub(super) fn remove_unfinished(path: &Path) {
        let Ok(entries) = fs::read_dir(directory_of(path)) else { return };
        for entry in entries.flatten() {
            let is_named = entry.file_name().to_str().is_some_and(|it| it.starts_with(NEW));
            let path = entry.path();
            if is_named && is_unfinished(&path) && fs::remove_file(&path).is_ok() {
                tracing::warn!(path = %path.display(), "a write was cut off: what it left is removed");
            }
        }
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

/// Returns whether a file is a lock of ours that was never put in its place, and whose process is gone.
fn is_unfinished(path: &Path) -> bool {
    let Some((file, text)) = read_lock(path) else { return false };
    let age = file.metadata().and_then(|it| it.modified()).ok().and_then(|it| it.elapsed().ok());
    (text.is_empty() || text.starts_with(MARK))
        && age.is_some_and(|it| it >= LEFT)
        && file.try_lock().is_ok()
}

fn directory_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::{Instant, SystemTime};

    use super::*;

    fn way() -> Move {
        let commit = CommitId::from_bytes([7; 20]);
        Move { branch: "refs/heads/main".to_owned(), from: commit, to: commit }
    }

    fn unfinished(directory: &Path) -> BTreeSet<PathBuf> {
        let entries = fs::read_dir(directory).unwrap().map(|it| it.unwrap().path());
        entries.filter(|it| it.file_name().unwrap().to_str().unwrap().starts_with(NEW)).collect()
    }

    #[test]
    fn a_lock_that_is_waited_for_is_written_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let first = MoveLock::take(path.clone(), &way()).unwrap();
        let second = std::thread::spawn({
            let path = path.clone();
            move || MoveLock::take(path, &way()).unwrap()
        });
        let (mut seen, began) = (BTreeSet::new(), Instant::now());
        while seen.is_empty() || began.elapsed() < PAUSE * 4 {
            seen.extend(unfinished(directory.path()));
            std::thread::yield_now();
        }
        drop(first);
        let second = second.join().unwrap();
        assert_eq!(seen.len(), 1);
        assert_eq!(unfinished(directory.path()), BTreeSet::new());
        assert!(MoveLock::is_ours(second.path()));
    }

    #[test]
    fn a_lock_that_cannot_be_taken_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        fs::write(&path, "").unwrap();
        let error = MoveLock::take(path, &way()).unwrap_err();
        assert_eq!(error.failure, FetchFailure::LockHeld);
        assert_eq!(unfinished(directory.path()), BTreeSet::new());
    }

    #[test]
    fn what_a_killed_process_left_beside_a_lock_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let write = |name: &str, text: &str, is_old: bool| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            let age = if is_old { LEFT * 2 } else { Duration::ZERO };
            file.set_modified(SystemTime::now() - age).unwrap();
            file
        };
        write("clade-lock-aaaaaa", "clade refs/heads/main", true);
        write("clade-lock-bbbbbb", "", true);
        write("clade-lock-new", "clade refs/heads/main", false);
        let held = write("clade-lock-held", "clade refs/heads/main", true);
        held.lock().unwrap();
        write("clade-lock-other", "of its owner", true);
        write("index.lock", "", true);
        fs::create_dir(directory.path().join("clade-lock-dir")).unwrap();
        MoveLock::remove_unfinished(&path);
        let mut left: Vec<String> = fs::read_dir(directory.path())
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort_unstable();
        let expected = [
            "clade-lock-dir",
            "clade-lock-held",
            "clade-lock-new",
            "clade-lock-other",
            "index.lock",
        ];
        assert_eq!(left, expected);
    }
}
