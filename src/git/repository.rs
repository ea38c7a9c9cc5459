//! Reading a repository: revisions, commits, trees, blobs.

use std::path::{Path, PathBuf};

use git2::ObjectType;
use jiff::Timestamp;

use super::libgit2;
use super::refs::WATCHED;
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
        let inner = git2::Repository::open(&self.path);
        let fail = |error: git2::Error| ReadError::new("the repository", error.message());
        Ok(Repository { inner: inner.map_err(fail)?, branches: self.branches })
    }
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

impl OpenError {
    pub(super) fn of(path: &Path, error: &git2::Error) -> Self {
        match error.code() {
            git2::ErrorCode::NotFound => Self::NotARepository(path.to_owned()),
            _ => Self::Unusable { path: path.to_owned(), reason: error.message().to_owned() },
        }
    }
}

/// A revision leads to no commit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{revision}` is not a commit of the repository")]
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
    pub(super) fn new(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { what: what.into(), reason: reason.into() }
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

impl Repository {
    /// Opens the repository at a path, or the one that the path lies in.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no repository, or one that cannot be used.
    pub fn discover(path: &Path) -> Result<Self, OpenError> {
        let fail = |error: git2::Error| OpenError::of(path, &error);
        libgit2::prepare().map_err(fail)?;
        let inner = git2::Repository::discover(path).map_err(fail)?;
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
        let inner = git2::Repository::open_bare(path).map_err(fail)?;
        Ok(Self { inner, branches: Branches::Mirrored })
    }

    pub(super) fn inner(&self) -> &git2::Repository {
        &self.inner
    }

    /// Returns the commit that a ref leads to.
    pub(super) fn target_of(&self, reference: &str) -> Option<CommitId> {
        let commit = self.inner.find_reference(reference).ok()?.peel_to_commit().ok()?;
        Some(id_of(commit.id()))
    }

    /// Returns what opens it again.
    pub fn opener(&self) -> Opener {
        Opener { path: self.inner.path().to_owned(), branches: self.branches }
    }

    /// Returns the directory with the objects and refs.
    pub fn directory(&self) -> &Path {
        self.inner.path()
    }

    /// Returns the directory of the working tree; a bare repository has none.
    pub fn worktree(&self) -> Option<&Path> {
        self.inner.workdir()
    }

    /// Returns the commit of a revision: anything that `git rev-parse` understands, but for searches
    /// of messages (`:/text`).
    ///
    /// A full id is always the commit itself and `HEAD` the watched branch, whatever branches are
    /// called. In a mirror the branches of the remote are known by their own names, before tags.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit.
    pub fn resolve(&self, revision: &str) -> Result<CommitId, RevisionError> {
        // A search of messages would run a pattern of the caller's over the whole history.
        if revision.contains(":/") || revision.contains("^{/") {
            return Err(RevisionError { revision: revision.to_owned() });
        }
        self.resolve_searching(revision)
    }

    /// Returns the commit of a revision that the owner of the repository names, who may search
    /// messages: `:/text`.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such commit.
    pub fn resolve_searching(&self, revision: &str) -> Result<CommitId, RevisionError> {
        let unknown = || RevisionError { revision: revision.to_owned() };
        if revision.is_empty() || revision.contains('\0') {
            return Err(unknown());
        }
        if let Ok(id) = git2::Oid::from_str(revision)
            && revision.len() == 40
        {
            let commit = self.inner.find_object(id, None).and_then(|it| it.peel_to_commit());
            return commit.map(|it| id_of(it.id())).map_err(|_| unknown());
        }
        let mirrored = match self.branches {
            Branches::Own => None,
            Branches::Mirrored => branch_of(revision).map(|it| format!("refs/remotes/origin/{it}")),
        };
        mirrored
            .and_then(|name| self.peel(&name))
            .or_else(|| self.peel(revision))
            .ok_or_else(unknown)
    }

    /// Returns the newest commit that two commits have in common, if they have any.
    ///
    /// # Errors
    ///
    /// Returns an error if the history cannot be read.
    pub fn merge_base(
        &self,
        one: CommitId,
        other: CommitId,
    ) -> Result<Option<CommitId>, ReadError> {
        let fail = |error: git2::Error| ReadError::new("the history", error.message());
        match self.inner.merge_base(oid(one), oid(other)) {
            Ok(common) => Ok(Some(id_of(common))),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(fail(error)),
        }
    }

    fn peel(&self, revision: &str) -> Option<CommitId> {
        let object = self.inner.revparse_single(revision).ok()?;
        let commit = object.peel(ObjectType::Commit).ok()?;
        Some(id_of(commit.id()))
    }

    /// Returns the commit of a branch, a tag or a full ref name, or of what HEAD names; a detached HEAD counts.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such branch, or no commit yet.
    pub fn branch_head(&self, branch: Option<&str>) -> Result<CommitId, RevisionError> {
        match branch {
            None => self.resolve("HEAD"),
            Some(branch) => {
                let found = if branch.starts_with("refs/") {
                    self.resolve(branch)
                } else {
                    self.resolve(&format!("refs/heads/{branch}"))
                        .or_else(|_| self.resolve(&format!("refs/tags/{branch}")))
                };
                found.map_err(|_| RevisionError { revision: branch.to_owned() })
            }
        }
    }

    /// Returns the full name of the ref that HEAD names; a detached HEAD names none.
    pub fn head_ref(&self) -> Option<String> {
        let head = self.inner.find_reference("HEAD").ok()?;
        let target = head.symbolic_target().ok()??;
        let name = target.strip_prefix(WATCHED).unwrap_or(target);
        (name != "HEAD").then(|| name.to_owned())
    }

    /// Returns the name of the branch that HEAD names; a detached HEAD names none.
    pub fn head_branch(&self) -> Option<String> {
        let name = self.head_ref()?;
        Some(name.strip_prefix("refs/heads/").map(str::to_owned).unwrap_or(name))
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

    /// Returns the parents of a commit.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit cannot be read.
    pub fn parents(&self, id: CommitId) -> Result<Vec<CommitId>, ReadError> {
        Ok(self.find_commit(id)?.parent_ids().map(id_of).collect())
    }

    /// Returns commits from the given one backwards along first parents.
    ///
    /// # Errors
    ///
    /// Returns an error if a commit cannot be read.
    pub fn log(&self, from: CommitId, limit: usize) -> Result<Vec<CommitId>, ReadError> {
        let mut walk = Vec::new();
        let mut next = Some(from);
        while let Some(id) = next.filter(|_| walk.len() < limit) {
            walk.push(id);
            next = self.find_commit(id)?.parent_ids().next().map(id_of);
        }
        Ok(walk)
    }

    /// Returns the first parent of a commit; none for a commit that follows no other.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit cannot be read.
    pub fn first_parent(&self, of: CommitId) -> Result<Option<CommitId>, ReadError> {
        Ok(self.find_commit(of)?.parent_ids().next().map(id_of))
    }

    /// Returns whether the repository lacks old commits, so that the oldest it has may follow others.
    pub fn is_shallow(&self) -> bool {
        self.inner.is_shallow()
    }

    /// Returns whether one commit is the other or an ancestor of it.
    ///
    /// # Errors
    ///
    /// Returns an error if a commit on the way cannot be read.
    pub fn is_ancestor(&self, ancestor: CommitId, descendant: CommitId) -> Result<bool, ReadError> {
        let what = || format!("the history of the commit {descendant}");
        let fail = |error: git2::Error| ReadError::new(what(), error.message());
        if ancestor == descendant {
            return Ok(true);
        }
        self.inner.graph_descendant_of(oid(descendant), oid(ancestor)).map_err(fail)
    }

    /// Returns the commits that one has and another lacks, newest first.
    ///
    /// # Errors
    ///
    /// Returns an error if a commit on the way cannot be read.
    pub fn between(&self, lacking: CommitId, having: CommitId) -> Result<Vec<CommitId>, ReadError> {
        self.beyond(&[lacking], having)
    }

    /// Returns the commits that one has and none of the others, newest first.
    ///
    /// # Errors
    ///
    /// Returns an error if a commit on the way cannot be read.
    pub fn beyond(
        &self,
        lacking: &[CommitId],
        having: CommitId,
    ) -> Result<Vec<CommitId>, ReadError> {
        let fail = |error: git2::Error| {
            ReadError::new(format!("the history of the commit {having}"), error.message())
        };
        let mut walk = self.inner.revwalk().map_err(fail)?;
        walk.push(oid(having)).map_err(fail)?;
        for lacking in lacking {
            walk.hide(oid(*lacking)).map_err(fail)?;
        }
        walk.map(|id| id.map(id_of).map_err(fail)).collect()
    }

    pub(super) fn find_commit(&self, id: CommitId) -> Result<git2::Commit<'_>, ReadError> {
        let fail = |error: git2::Error| ReadError::new(format!("the commit {id}"), error.message());
        self.inner.find_commit(oid(id)).map_err(fail)
    }

    /// Returns the size of a blob in bytes, without reading it.
    ///
    /// # Errors
    ///
    /// Returns an error if the blob cannot be found.
    pub fn blob_size(&self, id: BlobId) -> Result<u64, ReadError> {
        let fail = |error: git2::Error| ReadError::new(format!("the blob {id}"), error.message());
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
        let fail = |error: git2::Error| ReadError::new(format!("the blob {id}"), error.message());
        self.inner.find_blob(blob_oid(id)).map(|blob| blob.content().to_vec()).map_err(fail)
    }
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Repository").field(&self.inner.path()).finish()
    }
}

/// Returns the branch of the remote that a revision in a mirror begins with, if it can be one.
///
/// A remote may have a branch called `HEAD`, `@` or `refs/clade/live`: by these names alone it is not
/// meant, only by `refs/heads/HEAD`.
fn branch_of(revision: &str) -> Option<&str> {
    if let Some(branch) = revision.strip_prefix("refs/heads/") {
        return Some(branch);
    }
    let name = revision.split(['~', '^', ':']).next().unwrap_or_default();
    let name = name.split("@{").next().unwrap_or_default();
    let is_own = matches!(name, "" | "HEAD" | "@") || name.starts_with("refs/");
    (!is_own).then_some(revision)
}

/// Returns the bytes of an id.
pub(super) fn bytes(oid: git2::Oid) -> [u8; 20] {
    // libgit2 is built for SHA-1 alone here and opens no other repository.
    oid.as_bytes().try_into().unwrap_or_default()
}

pub(super) fn id_of(oid: git2::Oid) -> CommitId {
    CommitId::from_bytes(bytes(oid))
}

pub(super) fn oid(id: CommitId) -> git2::Oid {
    raw(id.as_bytes())
}

fn blob_oid(id: BlobId) -> git2::Oid {
    raw(id.as_bytes())
}

/// Returns the id with the given bytes; the zero id, which names nothing, cannot come of 20 bytes.
fn raw(bytes: &[u8; 20]) -> git2::Oid {
    git2::Oid::from_bytes(bytes).unwrap_or(git2::Oid::ZERO_SHA1)
}
