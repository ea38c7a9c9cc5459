//! Fetching from a repository on this machine, object by object, under limits.
//!
//! The transport that libgit2 has for this copies all refs or none, and reads every object whole.

use std::path::Path;

use git2::Oid;

use super::advertised::Advertised;
use crate::git::failure::{FetchError, FetchFailure};
use crate::git::object_copy::ObjectSource;
use crate::git::object_guard::guard;
use crate::git::options::ObjectLimits;
use crate::git::own_files::{denied_at, open_checked};
use crate::git::remote::Remote;
use crate::git::repository::OpenError;
use crate::git::transport::Attempt;

/// A repository on this machine that is mirrored.
pub(super) struct Source {
    repository: git2::Repository,
}

impl Source {
    pub(super) fn open(attempt: &Attempt, remote: &Remote) -> Result<Option<Self>, FetchError> {
        let Some(path) = remote.directory() else { return Ok(None) };
        if let Some(denied) = denied_at(&path) {
            let detail = OpenError::Denied(denied);
            return Err(FetchError::at(remote, FetchFailure::RepositoryNotFound, detail));
        }
        if !path.is_dir() {
            let detail = format!("`{}` is not a directory", path.display());
            return Err(FetchError::at(remote, FetchFailure::RepositoryNotFound, detail));
        }
        let repository = open_checked(&path).and_then(guard);
        let repository = repository.map_err(|error| attempt.explain(&error))?;
        Ok(Some(Self { repository }))
    }

    /// Returns the directory of git.
    pub(super) fn directory(&self) -> &Path {
        self.repository.path()
    }

    pub(super) fn has(&self, object: Oid) -> bool {
        self.repository.odb().is_ok_and(|it| it.exists(object))
    }

    pub(super) fn advertised(&self) -> Result<Advertised, git2::Error> {
        Advertised::of(&self.repository)
    }

    /// Copies what some objects lead to and the mirror does not have.
    pub(super) fn copy(
        &self,
        attempt: &Attempt,
        limits: ObjectLimits,
        mirror: &git2::Repository,
        tips: &[Oid],
    ) -> Result<(), FetchError> {
        ObjectSource { repository: &self.repository, limits }.copy(attempt, mirror, tips)
    }
}
