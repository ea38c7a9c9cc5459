//! The data directory of a mirror: one owner, and no half-made state.
#![expect(clippy::disallowed_methods, reason = "the mirror is a directory on disk")]

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::error::MirrorError;
use super::former_remote;
use super::privacy::narrow;
use super::repair::{belongs_to, is_mirror_of, is_of_place, note_remote, remove, repair};
use crate::config::{FileLock, create_private_file};
use crate::git::alternates::write_alternates;
use crate::git::cut_history;
use crate::git::pack_index;
use crate::git::regular_file::open_regular;
use crate::git::remote::Remote;
use crate::git::repository::OpenError;

/// The data directory, as long as this process owns it.
#[derive(Debug)]
pub(super) struct Directory {
    /// Where the repository is.
    base: PathBuf,
    /// Holds the base where the data directory is read-only.
    temporary: Option<TempDir>,
    /// Held as long as the mirror lives.
    _lock: Option<FileLock>,
}

impl Directory {
    /// Opens the data directory or creates it, readable by its owner alone. One that exists and is
    /// read-only is read, and what is fetched goes to a temporary directory.
    pub(super) fn open(data: &Path, remote: &Remote) -> Result<Self, MirrorError> {
        let io = |source| MirrorError::Directory { path: data.to_owned(), source };
        create_private(data).map_err(io)?;
        let lock = match create_private_file(&data.join("lock")) {
            Ok(lock) => lock,
            Err(error) if is_read_only(&error) && std::fs::read_dir(data).is_ok() => {
                tracing::error!(%error, path = %data.display(), "the data directory is read-only");
                return Self::open_read_only(data, remote);
            }
            Err(error) => return Err(io(error)),
        };
        let lock = FileLock::take(lock).map_err(|error| match error {
            TryLockError::WouldBlock => MirrorError::Locked(data.to_owned()),
            TryLockError::Error(source) => io(source),
        })?;
        narrow(data);
        let directory = Self { base: data.to_owned(), temporary: None, _lock: Some(lock) };
        directory.remove_fresh();
        let repository = directory.repository();
        former_remote::exchange(data, &repository, remote).map_err(io)?;
        if !repository.exists() && belongs_to(&directory.aside(), remote) {
            // A crash between the two renames of a replacement.
            std::fs::rename(directory.aside(), &repository).map_err(io)?;
        }
        if repository.exists() {
            let prepared =
                remove_repositories(&repository).and_then(|()| remove_leftovers(&repository));
            let packs = repository.join("objects/pack");
            match prepared.and_then(|()| pack_index::check_all(&packs)) {
                // Such a mirror is moved aside.
                Err(error) if is_of_place(&error) => {}
                prepared => prepared.map_err(|source| MirrorError::Directory {
                    path: repository.clone(),
                    source,
                })?,
            }
        }
        directory.make_usable(remote)?;
        Ok(directory)
    }

    /// Opens a read-only data directory: a temporary mirror has refs of its own and borrows objects.
    fn open_read_only(data: &Path, remote: &Remote) -> Result<Self, MirrorError> {
        let lock = open_regular(&data.join("lock")).or_else(|_| File::open(data));
        let lock =
            lock.map_err(|source| MirrorError::Directory { path: data.to_owned(), source })?;
        let lock = match FileLock::take(lock) {
            Err(TryLockError::WouldBlock) => return Err(MirrorError::Locked(data.to_owned())),
            // Some file systems cannot lock what is open for reading.
            taken => taken.ok(),
        };
        let path = std::env::temp_dir();
        let io = |source| MirrorError::Directory { path: path.clone(), source };
        let temporary = tempfile::Builder::new().prefix("clade-").tempdir().map_err(io)?;
        let base = temporary.path().to_owned();
        let kept = former_remote::kept_path(data, remote);
        let places = [data.join("mirror.git"), kept];
        if let Some(kept) = places.into_iter().find(|it| belongs_to(it, remote)) {
            borrow(&kept, &base.join("mirror.git")).map_err(io)?;
        }
        let directory = Self { base, temporary: Some(temporary), _lock: lock };
        directory.make_usable(remote)?;
        Ok(directory)
    }

    /// Repairs the repository, or puts a fresh one in its place.
    fn make_usable(&self, remote: &Remote) -> Result<(), MirrorError> {
        let repository = self.repository();
        let io = |source| MirrorError::Directory { path: repository.clone(), source };
        if repository.exists() {
            match repair(&repository, remote) {
                Err(error) if is_of_place(&error) => {
                    let path = repository.display();
                    tracing::error!(%error, %path, "the mirror cannot be repaired");
                    return self.replace(remote);
                }
                repaired => repaired.map_err(io)?,
            }
        }
        if is_mirror_of(&repository, remote) {
            return Ok(());
        }
        self.replace(remote)
    }

    /// Puts an empty mirror in the place of one that cannot be used.
    fn replace(&self, remote: &Remote) -> Result<(), MirrorError> {
        let repository = self.repository();
        let io = |source| MirrorError::Directory { path: repository.clone(), source };
        if repository.exists() {
            tracing::warn!(
                moved_to = %self.aside().display(),
                "the mirror cannot be used for this remote; it is moved aside"
            );
        }
        let fresh = self.prepare_fresh(remote)?;
        self.replace_with(&fresh).map_err(io)
    }

    /// Returns where the repository is.
    pub(super) fn repository(&self) -> PathBuf {
        self.base.join("mirror.git")
    }

    /// Returns whether what is fetched is lost at the end, since the data directory is read-only.
    pub(super) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    fn aside(&self) -> PathBuf {
        self.base.join("mirror.git.broken")
    }

    fn fresh(&self) -> PathBuf {
        self.base.join("mirror.git.new")
    }

    /// Removes a mirror that did not take the place of the one in use: on a full disk others need the room.
    pub(super) fn remove_fresh(&self) {
        let fresh = self.fresh();
        match remove(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, path = %fresh.display(), "an unfinished mirror cannot be removed");
            }
            _ => {}
        }
    }

    /// Makes an empty mirror beside the one in use.
    pub(super) fn prepare_fresh(&self, remote: &Remote) -> Result<PathBuf, MirrorError> {
        let fresh = self.fresh();
        let io = |source| MirrorError::Directory { path: fresh.clone(), source };
        if fresh.exists() {
            remove(&fresh).map_err(io)?;
        }
        create_private(&fresh).map_err(io)?;
        let fail = |error: git2::Error| OpenError::of(&fresh, &error);
        git2::Repository::init_bare(&fresh).map_err(fail)?;
        note_remote(&fresh, remote).map_err(io)?;
        Ok(fresh)
    }

    /// Puts the fresh mirror in the place of the one in use, which is kept aside, or which stays where it is if that fails.
    pub(super) fn replace_with(&self, fresh: &Path) -> io::Result<()> {
        let (repository, aside) = (self.repository(), self.aside());
        if repository.exists() {
            if aside.exists() {
                remove(&aside)?;
            }
            std::fs::rename(&repository, &aside)?;
        }
        std::fs::rename(fresh, &repository).inspect_err(|_| {
            // Where the mirror is missing, the next start takes the one that is aside.
            std::fs::rename(&aside, &repository).ok();
        })
    }
}

/// Creates a directory that only its owner can enter; one that exists stays as it is.
fn create_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Returns whether a file system or its permissions do not let us write.
fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

/// Makes a repository with the refs and the configuration of another one, whose objects it reads in
/// place.
fn borrow(from: &Path, to: &Path) -> io::Result<()> {
    create_private(&to.join("objects/info"))?;
    create_private(&to.join("objects/pack"))?;
    write_alternates(to, &from.join("objects"))?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && !is_lock(&entry.path()) {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    copy_refs(&from.join("refs"), &to.join("refs"))
}

fn copy_refs(from: &Path, to: &Path) -> io::Result<()> {
    create_private(to)?;
    if !from.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_refs(&path, &copied)?;
        } else if path.is_file() && !is_lock(&path) {
            copy(&path, &copied)?;
        }
    }
    Ok(())
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "lock")
}

/// Copies what a file holds, but not that it may be read-only.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::write(to, std::fs::read(from)?)
}

/// Removes repositories that a process which is gone needed for a while. Below the mirror's own directory a name like theirs
/// is that of a ref.
fn remove_repositories(mirror: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(mirror)? {
        let entry = entry?;
        let is_ours = entry.file_name().to_string_lossy().starts_with(cut_history::PREFIX);
        if is_ours && entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Removes what a process that is gone left half done: lock files and packs on their way. Ours is the only process here.
fn remove_leftovers(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            remove_leftovers(&path)?;
            continue;
        }
        // So libgit2 calls a pack until it is whole.
        let is_partial = directory.ends_with("objects/pack") && name.starts_with("pack_git2_");
        if is_partial || is_lock(&path) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}
