//! A repository that is read: opening it, and its objects.

mod error;
mod history;
mod revision;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::ObjectType;

pub use self::error::{ObjectFault, OpenError, ReadError, ResolveError, RevisionError};
pub use self::history::CommitInfo;
use super::libgit2;
use super::object_guard::{guard, header};
use super::object_id::{blob_oid, oid};
use super::own_files::{check_files_at, open_checked};
use super::remote::Remote;
use crate::model::{BlobId, CommitId};

/// A repository that is read, bare or with a working tree.
///
/// It may move to another thread, but serves one at a time: each thread opens its own.
pub struct Repository {
    inner: git2::Repository,
    branches: Branches,
}

/// Whose branches a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Branches {
    /// Those of the repository.
    Own,
    /// Those of the remote that the repository mirrors.
    Mirrored,
}

/// Opens a repository once more, for another thread.
#[derive(Clone, Debug)]
pub struct Opener {
    path: PathBuf,
    branches: Branches,
}

impl Opener {
    /// Opens the repository.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not there any more.
    pub fn open(&self) -> Result<Repository, ReadError> {
        let inner = open_checked(&self.path).and_then(guard);
        let fail = |error: git2::Error| ReadError::of("the repository", &error);
        Ok(Repository { inner: inner.map_err(fail)?, branches: self.branches })
    }
}

/// The mode of a submodule in the index.
const SUBMODULE: u32 = 0o160_000;

impl Repository {
    /// Opens the repository at a path, or the one that the path lies in.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no repository, or one that cannot be used.
    pub fn discover(path: &Path) -> Result<Self, OpenError> {
        let fail = |error: git2::Error| OpenError::of(path, &error);
        libgit2::prepare().map_err(fail)?;
        // Opened by the directory that git is in, one that stands elsewhere would not say where its working tree is.
        let from_above = git2::RepositoryOpenFlags::CROSS_FS;
        let none: [&std::ffi::OsStr; 0] = [];
        check_files_at(path).map_err(fail)?;
        let inner = git2::Repository::open_ext(path, from_above, none);
        let inner = inner.and_then(guard).map_err(fail)?;
        Ok(Self { inner, branches: Branches::Own })
    }

    /// Opens the bare repository in a directory that mirrors a remote.
    ///
    /// # Errors
    ///
    /// Returns an error if there is none, or one that cannot be used.
    pub fn open_mirror(path: &Path) -> Result<Self, OpenError> {
        let fail = |error: git2::Error| OpenError::of(path, &error);
        libgit2::prepare().map_err(fail)?;
        let opened = check_files_at(path).and_then(|()| git2::Repository::open_bare(path));
        let inner = opened.and_then(guard).map_err(fail)?;
        Ok(Self { inner, branches: Branches::Mirrored })
    }

    pub(super) fn inner(&self) -> &git2::Repository {
        &self.inner
    }

    /// Returns what opens it again.
    pub fn opener(&self) -> Opener {
        Opener { path: self.inner.path().to_owned(), branches: self.branches }
    }

    /// Returns the directory with the objects and refs.
    pub fn directory(&self) -> &Path {
        self.inner.path()
    }

    /// Returns where the repository was cloned from, as far as its settings say so.
    pub fn origin(&self) -> Option<Remote> {
        let remote = self.inner.find_remote("origin").ok()?;
        Remote::parse(remote.url().ok()?).ok()
    }

    /// Returns the directory of the working tree; a bare repository has none.
    pub fn worktree(&self) -> Option<&Path> {
        self.inner.workdir()
    }

    /// Returns the submodules of the index, by their paths from the top of the working tree.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read.
    pub fn staged_submodules(&self) -> Result<Vec<Vec<u8>>, ReadError> {
        let fail = |error: git2::Error| ReadError::new("the index", error.message());
        let index = self.inner.index().map_err(fail)?;
        let is_submodule = |it: &git2::IndexEntry| it.mode == SUBMODULE;
        Ok(index.iter().filter(is_submodule).map(|it| it.path).collect())
    }

    /// Finds out whether new objects can be written.
    ///
    /// # Errors
    ///
    /// Returns what the system says.
    pub fn check_writable(&self) -> std::io::Result<()> {
        /// More than the objects of most writes take.
        const ROOM: usize = 64 << 10;
        // git removes such files when it collects garbage, should we be killed.
        let mut file = tempfile::Builder::new()
            .prefix("tmp_obj_")
            .tempfile_in(self.inner.commondir().join("objects"))?;
        std::io::Write::write_all(&mut file, &vec![0; ROOM])?;
        file.as_file().sync_all()
    }

    pub(super) fn find_commit(&self, id: CommitId) -> Result<git2::Commit<'_>, ReadError> {
        let fail = |error: git2::Error| ReadError::of(format!("the commit {id}"), &error);
        self.inner.find_commit(oid(id)).map_err(fail)
    }

    /// Returns the size of a blob in bytes, without reading it.
    ///
    /// # Errors
    ///
    /// Returns an error if the blob cannot be found.
    pub fn blob_size(&self, id: BlobId) -> Result<u64, ReadError> {
        let fail = |error: git2::Error| ReadError::of(format!("the blob {id}"), &error);
        let database = self.inner.odb().map_err(fail)?;
        let (size, _) = header(&database, blob_oid(id)).map_err(fail)?;
        Ok(size as u64)
    }

    /// Returns the content of a blob.
    ///
    /// # Errors
    ///
    /// Returns an error if the blob cannot be read.
    pub fn blob(&self, id: BlobId) -> Result<Arc<[u8]>, ReadError> {
        let fail = |error: git2::Error| ReadError::of(format!("the blob {id}"), &error);
        let database = self.inner.odb().map_err(fail)?;
        let object = database.read(blob_oid(id)).map_err(fail)?;
        if object.kind() != ObjectType::Blob {
            return Err(ReadError::new(
                format!("the blob {id}"),
                "it is an object of another kind",
            ));
        }
        Ok(object.data().into())
    }
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Repository").field(&self.inner.path()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry of a tree may say that it is a file, whatever its object is.
    #[test]
    fn an_object_of_another_kind_cannot_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(directory.path()).unwrap();
        let database = git.odb().unwrap();
        let write = |kind| {
            BlobId::from_bytes(crate::git::object_id::bytes(database.write(kind, b"").unwrap()))
        };
        let (blob, tree) = (write(ObjectType::Blob), write(ObjectType::Tree));
        let repository = Repository::discover(directory.path()).unwrap();
        assert_eq!(repository.blob(blob).as_deref(), Ok(&b""[..]));
        assert_eq!(
            repository.blob(tree).unwrap_err().to_string(),
            format!("the blob {tree} cannot be read: it is an object of another kind")
        );
    }
}
