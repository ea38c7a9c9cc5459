//! The bare mirror that follows a remote.
#![expect(clippy::disallowed_methods, reason = "the mirror is a directory on disk")]

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use git2::{Direction, FetchOptions};

use super::remote::{FetchError, FetchFailure, Remote};
use super::repository::{OpenError, Repository, RevisionError, id_of, oid};
use crate::model::CommitId;

/// A bare copy of a remote repository, in a directory that one process owns.
#[derive(Debug)]
pub struct Mirror {
    remote: Remote,
    directory: PathBuf,
    /// Held as long as the mirror lives.
    _lock: File,
}

/// The mirror cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// Another process has it.
    #[error("the data directory `{}` is in use by another process", .0.display())]
    Locked(PathBuf),
    /// The directory cannot be used.
    #[error("the data directory `{}` cannot be used", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The repository in it cannot be used.
    #[error(transparent)]
    Repository(#[from] OpenError),
}

/// What a fetch brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The commit that the watched branch names now.
    pub head: CommitId,
}

/// The ref that names the commit that answers, so that a restart finds it.
const LIVE: &str = "refs/clade/live";

impl Mirror {
    /// Opens the mirror in a data directory, or makes it.
    ///
    /// Locks that a crash left behind are removed. A mirror that cannot be opened is put aside and
    /// made anew: everything in it can be fetched again.
    ///
    /// # Errors
    ///
    /// Returns an error if another process has the directory, or it cannot be written.
    pub fn open(data: &Path, remote: Remote) -> Result<Self, MirrorError> {
        let io = |source| MirrorError::Directory { path: data.to_owned(), source };
        std::fs::create_dir_all(data).map_err(io)?;
        let lock = File::create(data.join("lock")).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(MirrorError::Locked(data.to_owned())),
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        let directory = data.join("mirror.git");
        if directory.exists() {
            remove_stale_locks(&directory).map_err(io)?;
        }
        if git2::Repository::open_bare(&directory).is_err() {
            if directory.exists() {
                let aside = data.join("mirror.git.broken");
                if aside.exists() {
                    std::fs::remove_dir_all(&aside).map_err(io)?;
                }
                std::fs::rename(&directory, aside).map_err(io)?;
            }
            git2::Repository::init_bare(&directory).map_err(|error| OpenError::Unusable {
                path: directory.clone(),
                reason: error.message().to_owned(),
            })?;
        }
        Ok(Self { remote, directory, _lock: lock })
    }

    /// Opens the repository for reading.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be opened.
    pub fn repository(&self) -> Result<Repository, OpenError> {
        self.open_inner().map(Repository::wrap)
    }

    fn open_inner(&self) -> Result<git2::Repository, OpenError> {
        git2::Repository::open_bare(&self.directory).map_err(|error| OpenError::Unusable {
            path: self.directory.clone(),
            reason: error.message().to_owned(),
        })
    }

    /// Fetches all branches and tags, and returns the commit of the watched branch: the given one,
    /// or what the remote's HEAD names.
    ///
    /// # Errors
    ///
    /// Returns an error if the remote cannot be fetched or does not have the branch.
    pub fn fetch(&self, branch: Option<&str>) -> Result<Fetched, FetchError> {
        let other = |message: String| FetchError { failure: FetchFailure::Other, message };
        let repository = self.open_inner().map_err(|error| other(error.to_string()))?;
        let fail = |error: git2::Error| FetchError::of(&self.remote, &error);
        let mut remote = repository.remote_anonymous(&self.remote.address()).map_err(fail)?;
        // A fetch of a branch that is gone succeeds and leaves the old one, so what the remote has
        // is looked at first.
        let wanted = {
            let connection = remote.connect_auth(Direction::Fetch, None, None).map_err(fail)?;
            let heads = connection.list().map_err(fail)?;
            let name = |head: &git2::RemoteHead<'_>| head.name().to_owned();
            match branch {
                Some(branch) => {
                    let full = full_name(branch);
                    heads.iter().find(|head| name(head) == full).map(git2::RemoteHead::oid)
                }
                None => heads.iter().find(|head| name(head) == "HEAD").map(git2::RemoteHead::oid),
            }
        };
        let Some(wanted) = wanted else {
            let what =
                branch.map_or_else(|| "HEAD".to_owned(), |branch| format!("the branch `{branch}`"));
            let message = format!("`{}` does not have {what}", self.remote);
            return Err(FetchError { failure: FetchFailure::RefNotFound, message });
        };
        let mut options = FetchOptions::new();
        options.prune(git2::FetchPrune::On).download_tags(git2::AutotagOption::All);
        // A detached HEAD is on no branch.
        let specs = ["+refs/heads/*:refs/remotes/origin/*", "+HEAD:refs/clade/detached"];
        let taken = if branch.is_some() { 1 } else { 2 };
        let specs: Vec<&str> = specs.into_iter().take(taken).collect();
        remote.fetch(&specs, Some(&mut options), None).map_err(fail)?;
        if repository.find_commit(wanted).is_err() {
            return Err(other(format!("`{}` did not send the commit {wanted}", self.remote)));
        }
        let head = id_of(wanted).ok_or_else(|| other("the remote uses another hash".to_owned()))?;
        Ok(Fetched { head })
    }

    /// Returns the commit that answered last.
    pub fn live(&self) -> Option<CommitId> {
        let repository = self.open_inner().ok()?;
        let target = repository.find_reference(LIVE).ok()?.target()?;
        id_of(target)
    }

    /// Notes the commit that answers.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written.
    pub fn set_live(&self, commit: CommitId) -> Result<(), RevisionError> {
        let fail = || RevisionError { revision: commit.to_string() };
        let repository = self.open_inner().map_err(|_| fail())?;
        repository.reference(LIVE, oid(commit), true, "activated").map(drop).map_err(|_| fail())
    }
}

fn full_name(branch: &str) -> String {
    if branch.starts_with("refs/") { branch.to_owned() } else { format!("refs/heads/{branch}") }
}

/// Removes the lock files of a process that is gone: ours is the only one here.
fn remove_stale_locks(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if path.file_name().is_some_and(|name| name != "objects") {
                remove_stale_locks(&path)?;
            }
        } else if path.extension().is_some_and(|it| it == "lock") {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}
