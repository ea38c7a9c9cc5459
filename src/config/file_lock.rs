//! Locks of files that end with the value that holds them.

use std::fs::{File, TryLockError};

/// A lock on a file until it is dropped, also where a child process that is being started has a copy of the open file for
/// a moment: closing it alone would leave the lock to that copy.
#[derive(Debug)]
pub struct FileLock(File);

impl FileLock {
    /// Locks a file that no other process has locked.
    ///
    /// # Errors
    ///
    /// Returns an error if another has the lock, or the file cannot be locked.
    pub fn take(file: File) -> Result<Self, TryLockError> {
        file.try_lock()?;
        Ok(Self(file))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::error!(%error, "a lock is not released");
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a lock is tried on a file")]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_with_its_holder_though_a_copy_of_the_file_is_open() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let opened = || File::open(file.path()).unwrap();
        let first = opened();
        let copy = first.try_clone().unwrap();
        let lock = FileLock::take(first).unwrap();
        assert!(matches!(FileLock::take(opened()), Err(TryLockError::WouldBlock)));
        drop(lock);
        assert!(FileLock::take(opened()).is_ok());
        drop(copy);
    }
}
