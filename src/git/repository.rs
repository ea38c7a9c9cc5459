//! Reading a repository: revisions, commits, trees, blobs.

use std::path::{Path, PathBuf};

use git2::{ObjectType, TreeWalkMode, TreeWalkResult};
use jiff::Timestamp;

use crate::model::{BlobId, CommitId};

/// A repository that is read, bare or with a working tree.
pub struct Repository {
    inner: git2::Repository,
}

/// A repository cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none.
    #[error("`{}` is not a git repository", .0.display())]
    NotARepository(PathBuf),
    /// There is one, but it cannot be used.
    #[error("the git repository `{}` cannot be opened: {reason}", .path.display())]
    Unusable {
        /// Where it is.
        path: PathBuf,
        /// What git says.
        reason: String,
    },
}

/// A revision leads to no commit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{revision}` is no commit of the repository")]
pub struct RevisionError {
    /// The revision as given.
    pub revision: String,
}

/// An object of the repository cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be read: {reason}")]
pub struct ReadError {
    what: String,
    reason: String,
}

impl ReadError {
    fn new(what: impl Into<String>, error: &git2::Error) -> Self {
        Self { what: what.into(), reason: error.message().to_owned() }
    }
}

/// What people want to know of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitInfo {
    /// Its id.
    pub id: CommitId,
    /// The name of its author.
    pub author: String,
    /// When it was made, by its committer's clock.
    pub time: Timestamp,
    /// The first line of its message.
    pub subject: String,
}

/// A file of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    /// The path from the directory that was asked for, with `/`; what is not UTF-8 is replaced.
    pub path: String,
    /// What it is.
    pub kind: EntryKind,
}

/// What stands in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file with its content.
    File(BlobId),
    /// A symbolic link.
    Link,
    /// A submodule.
    Submodule,
}

impl Repository {
    /// Opens the repository at a path, or the one that the path lies in.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no repository, or one that cannot be used.
    pub fn discover(path: &Path) -> Result<Self, OpenError> {
        git2::Repository::discover(path).map(|inner| Self { inner }).map_err(|error| {
            match error.code() {
                git2::ErrorCode::NotFound => OpenError::NotARepository(path.to_owned()),
                _ => OpenError::Unusable {
                    path: path.to_owned(),
                    reason: error.message().to_owned(),
                },
            }
        })
    }

    pub(super) fn wrap(inner: git2::Repository) -> Self {
        Self { inner }
    }

    /// Returns the directory of the working tree; a bare repository has none.
    pub fn worktree(&self) -> Option<&Path> {
        self.inner.workdir()
    }

    /// Returns the commit of a revision: anything that `git rev-parse` understands.
    ///
    /// In a mirror the branches of the remote are known by their own names.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit.
    pub fn resolve(&self, revision: &str) -> Result<CommitId, RevisionError> {
        let unknown = || RevisionError { revision: revision.to_owned() };
        if revision.is_empty() || revision.contains('\0') {
            return Err(unknown());
        }
        let candidates = [
            revision.strip_prefix("refs/heads/").map(|it| format!("refs/remotes/origin/{it}")),
            Some(format!("refs/remotes/origin/{revision}")),
            Some(revision.to_owned()),
        ];
        let is_mirror = self.inner.is_bare();
        candidates
            .into_iter()
            .flatten()
            .filter(|it| is_mirror || it == revision)
            .find_map(|it| self.peel(&it))
            .ok_or_else(unknown)
    }

    fn peel(&self, revision: &str) -> Option<CommitId> {
        let object = self.inner.revparse_single(revision).ok()?;
        let commit = object.peel(ObjectType::Commit).ok()?;
        id_of(commit.id())
    }

    /// Returns the commit of a branch, or of what HEAD names; a detached HEAD counts.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such branch, or no commit yet.
    pub fn branch_head(&self, branch: Option<&str>) -> Result<CommitId, RevisionError> {
        match branch {
            None => self.resolve("HEAD"),
            Some(branch) => {
                let name = branch.strip_prefix("refs/heads/").unwrap_or(branch);
                self.resolve(&format!("refs/heads/{name}"))
                    .map_err(|_| RevisionError { revision: branch.to_owned() })
            }
        }
    }

    /// Returns the name of the branch that HEAD names; a detached HEAD names none.
    pub fn head_branch(&self) -> Option<String> {
        let head = self.inner.find_reference("HEAD").ok()?;
        let target = head.symbolic_target().ok()??;
        Some(target.strip_prefix("refs/heads/").unwrap_or(target).to_owned())
    }

    /// Returns what people want to know of a commit.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit cannot be read.
    pub fn commit(&self, id: CommitId) -> Result<CommitInfo, ReadError> {
        let commit = self.find_commit(id)?;
        let seconds = commit.time().seconds();
        Ok(CommitInfo {
            id,
            author: String::from_utf8_lossy(commit.author().name_bytes()).into_owned(),
            time: Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH),
            subject: commit
                .message_bytes()
                .split(|byte| *byte == b'\n')
                .map(|line| String::from_utf8_lossy(line).trim().to_owned())
                .find(|line| !line.is_empty())
                .unwrap_or_default(),
        })
    }

    /// Returns commits from the given one backwards along first parents.
    ///
    /// # Errors
    ///
    /// Returns an error if a commit cannot be read.
    pub fn log(&self, from: CommitId, limit: usize) -> Result<Vec<CommitId>, ReadError> {
        let mut walk = Vec::new();
        let mut next = Some(self.find_commit(from)?);
        while let Some(commit) = next.filter(|_| walk.len() < limit) {
            walk.extend(id_of(commit.id()));
            next = commit.parent(0).ok();
        }
        Ok(walk)
    }

    /// Returns whether one commit is an ancestor of the other.
    pub fn is_ancestor(&self, ancestor: CommitId, descendant: CommitId) -> bool {
        self.inner.graph_descendant_of(oid(descendant), oid(ancestor)).unwrap_or(false)
    }

    fn find_commit(&self, id: CommitId) -> Result<git2::Commit<'_>, ReadError> {
        let fail = |error: git2::Error| ReadError::new(format!("the commit {id}"), &error);
        self.inner.find_commit(oid(id)).map_err(fail)
    }

    /// Returns every file below a directory of a commit's tree, by path; links are not followed.
    ///
    /// # Errors
    ///
    /// Returns an error if the directory does not exist or a tree cannot be read.
    pub fn files(&self, commit: CommitId, directory: &str) -> Result<Vec<TreeEntry>, ReadError> {
        let what = || match directory {
            "" | "." => format!("the tree of the commit {commit}"),
            _ => format!("the directory `{directory}` of the commit {commit}"),
        };
        let fail = |error: git2::Error| ReadError::new(what(), &error);
        let mut tree = self.find_commit(commit)?.tree().map_err(fail)?;
        let path = directory.trim_matches('/');
        if !matches!(path, "" | ".") {
            let entry = tree.get_path(Path::new(path)).map_err(fail)?;
            let object = entry.to_object(&self.inner).map_err(fail)?;
            tree = object.peel_to_tree().map_err(fail)?;
        }
        let mut files = Vec::new();
        tree.walk(TreeWalkMode::PreOrder, |parent, entry| {
            let kind = match (entry.kind(), entry.filemode()) {
                (Some(ObjectType::Commit), _) => Some(EntryKind::Submodule),
                (Some(ObjectType::Blob), 0o120_000) => Some(EntryKind::Link),
                (Some(ObjectType::Blob), _) => Some(EntryKind::File(blob_of(entry.id()))),
                _ => None,
            };
            if let Some(kind) = kind {
                let name = String::from_utf8_lossy(entry.name_bytes());
                files.push(TreeEntry { path: format!("{parent}{name}"), kind });
            }
            TreeWalkResult::Ok
        })
        .map_err(fail)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// Returns the size of a blob in bytes, without reading it.
    ///
    /// # Errors
    ///
    /// Returns an error if the blob cannot be found.
    pub fn blob_size(&self, id: BlobId) -> Result<u64, ReadError> {
        let fail = |error: git2::Error| ReadError::new(format!("the blob {id}"), &error);
        let database = self.inner.odb().map_err(fail)?;
        let (size, _) = database.read_header(blob_oid(id)).map_err(fail)?;
        Ok(size as u64)
    }

    /// Returns the content of a blob.
    ///
    /// # Errors
    ///
    /// Returns an error if the blob cannot be read.
    pub fn blob(&self, id: BlobId) -> Result<Vec<u8>, ReadError> {
        let fail = |error: git2::Error| ReadError::new(format!("the blob {id}"), &error);
        self.inner.find_blob(blob_oid(id)).map(|blob| blob.content().to_vec()).map_err(fail)
    }
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Repository").field(&self.inner.path()).finish()
    }
}

pub(super) fn id_of(oid: git2::Oid) -> Option<CommitId> {
    oid.as_bytes().try_into().ok().map(CommitId::from_bytes)
}

fn blob_of(oid: git2::Oid) -> BlobId {
    BlobId::from_bytes(oid.as_bytes().try_into().unwrap_or_default())
}

pub(super) fn oid(id: CommitId) -> git2::Oid {
    git2::Oid::from_bytes(id.as_bytes()).unwrap_or(git2::Oid::ZERO_SHA1)
}

fn blob_oid(id: BlobId) -> git2::Oid {
    git2::Oid::from_bytes(id.as_bytes()).unwrap_or(git2::Oid::ZERO_SHA1)
}
