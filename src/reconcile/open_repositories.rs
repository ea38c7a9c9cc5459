//! Repositories that several threads read at the same time.

use parking_lot::Mutex;

use crate::git::{Opener, ReadError, Repository};

/// Opens a repository as often as threads read it at the same time: one value of it is for one thread, and to open
/// another takes as long as to read thirty files.
pub(super) struct OpenRepositories {
    opener: Opener,
    idle: Mutex<Vec<Repository>>,
}

impl OpenRepositories {
    pub(super) fn of(repository: &Repository) -> Self {
        Self { opener: repository.opener(), idle: Mutex::default() }
    }

    /// Calls `read` with a repository that no other thread reads.
    ///
    /// # Errors
    ///
    /// Returns the error of the call, or one if the repository cannot be opened any more.
    pub(super) fn with<T>(
        &self,
        read: impl FnOnce(&Repository) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let idle = self.idle.lock().pop();
        let repository = match idle {
            Some(repository) => repository,
            None => self.opener.open()?,
        };
        let done = read(&repository);
        self.idle.lock().push(repository);
        done
    }
}
