//! A repository that is read: opening it, and its objects.

mod containment;
mod error;
mod history;
mod readable;
mod revision;
mod uncommitted;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::ObjectType;

pub use self::containment::ContainedCommits;
pub use self::error::{
    ObjectFault, OpenError, ReadError, ResolveError, RevisionError, RevisionFault,
};
pub use self::history::CommitInfo;
pub use self::revision::CommitPresence;
use super::commit_links::SHALLOW;
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

/// The flag of an entry of the index whose file a sparse checkout leaves out.
const SKIP_WORKTREE: u16 = 1 << 14;

/// An entry of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedEntry {
    /// Its path from the top of the working tree.
    pub path: Vec<u8>,
    /// Whether it is a submodule.
    pub is_submodule: bool,
    /// Whether a sparse checkout leaves its file out.
    pub is_sparse: bool,
}

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

    /// Opens the repository at a path: the top of its working tree, or where git keeps it.
    ///
    /// # Errors
    ///
    /// As [`Repository::discover`]; and an error if the path only lies in a repository, whose root is another directory.
    pub fn at(path: &Path) -> Result<Self, OpenError> {
        let repository = Self::discover(path)?;
        match repository.around(path) {
            None => Ok(repository),
            Some(inside) => Err(inside),
        }
    }

    /// Says that a path is a directory inside this repository, if it is.
    fn around(&self, path: &Path) -> Option<OpenError> {
        let real = |path: &Path| path.canonicalize().ok();
        let here = real(path)?;
        let own = self.worktree().map(|it| (it.to_owned(), it.join(".git")));
        let tops =
            own.iter().flat_map(|(top, link)| [top.as_path(), link]).chain([self.directory()]);
        if tops.filter_map(real).any(|it| it == here) {
            return None;
        }
        let top = self.worktree().unwrap_or(self.directory());
        let top = real(top).unwrap_or_else(|| top.to_owned());
        let is_gits = |it: &&Path| it.starts_with(".git");
        let below = self.worktree().and_then(|_| here.strip_prefix(&top).ok());
        let below = below.filter(|it| !is_gits(it)).map(Path::to_owned);
        Some(OpenError::Inside { path: path.to_owned(), top, below })
    }

    /// Opens the bare repository in a directory that mirrors a remote.
    ///
    /// # Errors
    ///
    /// Returns an error if there is none, or one that cannot be used.
    pub fn open_mirror(path: &Path) -> Result<Self, OpenError> {
        let fail = |error: git2::Error| OpenError::of(path, &error);
        libgit2::prepare().map_err(fail)?;
        // Opened as a bare one, it does not read where its history ends.
        let open = match path.join(SHALLOW).exists() {
            true => git2::Repository::open,
            false => git2::Repository::open_bare,
        };
        let opened = check_files_at(path).and_then(|()| open(path));
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

    /// Returns the entries of the index.
    ///
    /// # Errors
    ///
    /// Returns an error if the index cannot be read.
    pub fn staged(&self) -> Result<Vec<StagedEntry>, ReadError> {
        let fail = |error: git2::Error| ReadError::new("the index", error.message());
        let index = self.inner.index().map_err(fail)?;
        let entry = |it: git2::IndexEntry| StagedEntry {
            is_submodule: it.mode == SUBMODULE,
            is_sparse: it.flags_extended & SKIP_WORKTREE != 0,
            path: it.path,
        };
        Ok(index.iter().map(entry).collect())
    }

    /// Returns whether the ignore files of the repository name a path from the top of the working tree, or a directory above
    /// it. They have no say about files in the index.
    pub fn ignores(&self, path: &Path) -> bool {
        self.inner.is_path_ignored(path).unwrap_or(false)
    }

    /// Returns whether the working tree has a part of the files of its commit by the settings of the repository.
    pub fn is_sparse(&self) -> bool {
        let settings = self.inner.config();
        settings.and_then(|it| it.get_bool("core.sparseCheckout")).unwrap_or(false)
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

    #[test]
    #[expect(clippy::disallowed_methods, reason = "repositories are directories on disk")]
    fn a_repository_is_at_its_top_and_where_git_keeps_it() {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let (mono, bare) = (base.join("mono"), base.join("bare.git"));
        git2::Repository::init(&mono).unwrap();
        git2::Repository::init_bare(&bare).unwrap();
        std::fs::create_dir_all(mono.join("staging/groups")).unwrap();
        std::os::unix::fs::symlink(&mono, base.join("link")).unwrap();
        std::os::unix::fs::symlink(mono.join("staging"), base.join("deep")).unwrap();
        for path in ["mono", "mono/", "mono/.", "mono/.git", "mono/staging/..", "bare.git", "link"]
        {
            assert!(Repository::at(&base.join(path)).is_ok(), "{path}");
        }
        for (path, top, below) in [
            ("mono/staging", &mono, Some("staging")),
            ("mono/staging/groups/", &mono, Some("staging/groups")),
            ("deep", &mono, Some("staging")),
            ("mono/.git/refs", &mono, None),
            ("bare.git/refs", &bare, None),
        ] {
            match Repository::at(&base.join(path)) {
                Err(OpenError::Inside { top: found, below: inside, .. }) => {
                    assert_eq!((&found, inside), (top, below.map(PathBuf::from)), "{path}");
                }
                other => panic!("{path}: {other:?}"),
            }
        }
        let absent = Repository::at(&mono.join("absent"));
        assert!(matches!(absent, Err(OpenError::Missing(_))), "{absent:?}");
    }

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
