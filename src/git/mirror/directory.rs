//! The data directory of a mirror: one owner, and no half-made state.
#![expect(clippy::disallowed_methods, reason = "the mirror is a directory on disk")]

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::MirrorError;
use crate::git::remote::Remote;
use crate::git::repository::OpenError;

/// The setting in the mirror's configuration that names its remote.
const REMOTE: &str = "clade.remote";

/// The data directory, as long as this process owns it.
#[derive(Debug)]
pub(super) struct Directory {
    data: PathBuf,
    /// Held as long as the mirror lives.
    _lock: File,
}

impl Directory {
    pub(super) fn open(data: &Path, remote: &Remote) -> Result<Self, MirrorError> {
        let io = |source| MirrorError::Directory { path: data.to_owned(), source };
        std::fs::create_dir_all(data).map_err(io)?;
        let lock = File::create(data.join("lock")).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(MirrorError::Locked(data.to_owned())),
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        let directory = Self { data: data.to_owned(), _lock: lock };
        let repository = directory.repository();
        if repository.exists() {
            remove_leftovers(&repository).map_err(io)?;
        } else if directory.aside().exists() {
            // A crash between the two renames of a replacement.
            std::fs::rename(directory.aside(), &repository).map_err(io)?;
        }
        if !is_mirror_of(&repository, remote) {
            let fresh = directory.prepare_fresh(remote)?;
            directory.replace_with(&fresh).map_err(io)?;
        }
        Ok(directory)
    }

    /// Returns where the repository is.
    pub(super) fn repository(&self) -> PathBuf {
        self.data.join("mirror.git")
    }

    fn aside(&self) -> PathBuf {
        self.data.join("mirror.git.broken")
    }

    /// Makes an empty mirror beside the one in use.
    pub(super) fn prepare_fresh(&self, remote: &Remote) -> Result<PathBuf, MirrorError> {
        let fresh = self.data.join("mirror.git.new");
        let io = |source| MirrorError::Directory { path: fresh.clone(), source };
        if fresh.exists() {
            std::fs::remove_dir_all(&fresh).map_err(io)?;
        }
        let fail = |error: git2::Error| OpenError::of(&fresh, &error);
        let made = git2::Repository::init_bare(&fresh).map_err(fail)?;
        let mut settings = made.config().map_err(fail)?;
        settings.set_str(REMOTE, &remote.address()).map_err(fail)?;
        Ok(fresh)
    }

    /// Puts the fresh mirror in the place of the one in use, which is kept aside.
    pub(super) fn replace_with(&self, fresh: &Path) -> io::Result<()> {
        let (repository, aside) = (self.repository(), self.aside());
        if repository.exists() {
            if aside.exists() {
                std::fs::remove_dir_all(&aside)?;
            }
            std::fs::rename(&repository, &aside)?;
        }
        std::fs::rename(fresh, &repository)
    }
}

/// Returns whether a directory holds a mirror of the remote that can be opened.
fn is_mirror_of(directory: &Path, remote: &Remote) -> bool {
    let Ok(repository) = git2::Repository::open_bare(directory) else { return false };
    let of = repository.config().and_then(|settings| settings.get_string(REMOTE));
    of.is_ok_and(|of| of == remote.address())
}

/// Removes what a process that is gone left half done: lock files and packs on their way. Ours is
/// the only process here.
fn remove_leftovers(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            remove_leftovers(&path)?;
            continue;
        }
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // So libgit2 calls a pack until it is whole.
        let is_partial = directory.ends_with("objects/pack") && name.starts_with("pack_git2_");
        if is_partial || path.extension().is_some_and(|it| it == "lock") {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}
