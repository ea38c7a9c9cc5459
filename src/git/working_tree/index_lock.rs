//! The lock of an index, as git takes it, and the index below it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::git::durable::sync_files;
use crate::git::failure::FetchError;
use crate::git::move_lock::{Move, MoveLock};

/// The lock, until it is dropped.
#[derive(Debug)]
pub(super) struct IndexLock(MoveLock);

impl IndexLock {
    /// Locks the index in a directory of git.
    ///
    /// # Errors
    ///
    /// Returns an error if another process has it, or the lock cannot be written.
    pub(super) fn take(directory: &Path, way: &Move) -> Result<Self, FetchError> {
        MoveLock::take(path_in(directory), way).map(Self)
    }

    /// Takes the lock over that a process of ours left when it was killed, and returns what it was about to do.
    pub(super) fn take_over(directory: &Path) -> Option<(Self, Move)> {
        MoveLock::take_over(&path_in(directory)).map(|(lock, way)| (Self(lock), way))
    }

    /// Removes what killed processes left of locks that they were about to take in a directory of git.
    pub(super) fn remove_unfinished(directory: &Path) {
        MoveLock::remove_unfinished(&path_in(directory));
    }

    /// Returns whether a process of ours locked an index.
    pub(super) fn is_ours(directory: &Path) -> bool {
        MoveLock::is_ours(&path_in(directory))
    }

    /// Copies the index, for changes.
    pub(super) fn copy_index(&self) -> io::Result<PathBuf> {
        let copy = self.0.path().with_file_name("index.clade");
        // What a killed process left; no other program has these.
        for left in [copy.with_extension("clade.lock"), copy.clone()] {
            fs::remove_file(left).or_else(|it| match it.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(it),
            })?;
        }
        match fs::copy(self.index(), &copy) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(copy),
        }
    }

    /// Puts a changed copy in the place of the index, and both that and the files that it is about on the disk.
    ///
    /// # Errors
    ///
    /// Returns an error if something cannot be written.
    pub(super) fn replace_index(
        &self,
        copy: &Path,
        mut files: Vec<PathBuf>,
    ) -> Result<(), FetchError> {
        let index = self.index();
        files.push(copy.to_owned());
        sync_files(&files)?;
        fs::rename(copy, &index).map_err(|it| FetchError::of_file(&index, "written", &it))?;
        sync_files(&[index])
    }

    fn index(&self) -> PathBuf {
        self.0.path().with_file_name("index")
    }
}

fn path_in(directory: &Path) -> PathBuf {
    directory.join("index.lock")
}
