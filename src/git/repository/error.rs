//! Why a repository, a revision or an object cannot be read.

use std::path::{Path, PathBuf};

use crate::git::failure::{FetchFailure, failure_of};
use crate::git::own_files::{denied_at, is_missing};

/// A repository cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none.
    #[error("`{}` is not a git repository", .0.display())]
    NotARepository(PathBuf),
    /// Nothing is there.
    #[error("`{}` does not exist{}", .0.display(), tilde_help(.0))]
    Missing(PathBuf),
    /// It is a directory inside one.
    #[error("`{}` is inside the git repository `{}`", .path.display(), .top.display())]
    Inside {
        /// The directory.
        path: PathBuf,
        /// The top of the repository.
        top: PathBuf,
        /// The directory from the top of the working tree; `None` inside what git keeps.
        below: Option<PathBuf>,
    },
    /// There may be one, and it may not be read.
    #[error(
        "`{}` cannot be read: permission denied; let this user read it, and what is below it",
        .0.display()
    )]
    Denied(PathBuf),
    /// There is one, and what finds its objects is damaged.
    #[error("the git repository `{}` is damaged: {reason}", .path.display())]
    Damaged {
        /// Where it is.
        path: PathBuf,
        /// What is damaged, and how to mend it.
        reason: String,
    },
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
    pub(in crate::git) fn of(path: &Path, error: &git2::Error) -> Self {
        let (path, reason) = (path.to_owned(), error.message().to_owned());
        match (error.code(), failure_of(error)) {
            (git2::ErrorCode::NotFound, _) => match denied_at(&path) {
                Some(denied) => Self::Denied(denied),
                None if is_missing(&path) => Self::Missing(path),
                None => Self::NotARepository(path),
            },
            (_, FetchFailure::CorruptObjects) => Self::Damaged { path, reason },
            _ => Self::Unusable { path, reason },
        }
    }
}

/// Says why a path that begins with `~` leads nowhere.
fn tilde_help(path: &Path) -> &'static str {
    if path.starts_with("~") {
        ": only a shell expands `~`, and not in quotes or in a file; write the whole path"
    } else {
        ""
    }
}

/// A revision leads to no commit, or to more than one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{revision}` is {fault}{}", fetch_help(revision, *fault))]
pub struct RevisionError {
    /// The revision as given.
    pub revision: String,
    /// What is wrong with it.
    pub fault: RevisionFault,
}

/// Why a revision leads to no one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevisionFault {
    /// It leads to no commit.
    #[error("not a commit of the repository")]
    Unknown,
    /// It leads to no commit of a shallow clone, which lacks older commits and other branches.
    #[error(
        "not a commit of the repository, which is a shallow clone: fetch older commits and other branches, by `git fetch --unshallow`, or `fetch-depth: 0` of `actions/checkout`"
    )]
    NotInShallowClone,
    /// It leads to no commit, and is named like a branch of a remote that the repository has.
    #[error("not a commit of the repository")]
    NotFetched,
    /// There is no commit.
    #[error("not a commit of the repository, which has none yet: commit the files first")]
    NoCommits,
    /// It begins with the name of a branch or tag that is the beginning of the id of another commit.
    #[error(
        "the beginning of a commit's id and the name of a branch or tag at another commit: write the whole id, or `refs/heads/…`"
    )]
    Ambiguous,
}

/// Says how the branch of a remote is fetched that a revision begins with.
fn fetch_help(revision: &str, fault: RevisionFault) -> String {
    match (fault, revision.split_once('/')) {
        (RevisionFault::NotFetched, Some((remote, rest))) => {
            let branch = rest.split(['~', '^', '@', ':']).next().unwrap_or(rest);
            format!(": if the remote has this branch, fetch it: `git fetch {remote} {branch}`")
        }
        _ => String::new(),
    }
}

/// A revision is not resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// It leads to no commit.
    #[error(transparent)]
    Unknown(#[from] RevisionError),
    /// It leads to objects that cannot be read, so there may be a commit.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
}

impl ResolveError {
    /// What libgit2 says of a revision.
    pub(in crate::git) fn of(revision: &str, error: &git2::Error) -> Self {
        use git2::ErrorCode::{Ambiguous, InvalidSpec, NotFound, Peel};

        let is_absent = matches!(error.code(), NotFound | Peel | InvalidSpec | Ambiguous);
        // What else libgit2 says is of the text, such as a date in a reflog.
        let is_of_files =
            matches!(error.class(), git2::ErrorClass::Os | git2::ErrorClass::Filesystem);
        if is_absent || !(is_of_files || failure_of(error) == FetchFailure::CorruptObjects) {
            return Self::unknown(revision);
        }
        Self::Unreadable(ReadError::of(format!("the commit `{revision}`"), error))
    }

    pub(super) fn ambiguous(revision: &str) -> Self {
        Self::Unknown(RevisionError {
            revision: revision.to_owned(),
            fault: RevisionFault::Ambiguous,
        })
    }

    pub(in crate::git) fn unknown(revision: &str) -> Self {
        Self::Unknown(RevisionError {
            revision: revision.to_owned(),
            fault: RevisionFault::Unknown,
        })
    }

    /// Says that the repository is a shallow clone.
    pub(in crate::git) fn in_shallow_clone(self) -> Self {
        self.explained(RevisionFault::NotInShallowClone)
    }

    /// Says that the revision may be a branch of a remote.
    pub(in crate::git) fn of_remote(self) -> Self {
        self.explained(RevisionFault::NotFetched)
    }

    /// Says that the repository has no commit.
    pub(in crate::git) fn in_empty_repository(self) -> Self {
        self.explained(RevisionFault::NoCommits)
    }

    /// Says why a revision leads to no commit.
    fn explained(self, fault: RevisionFault) -> Self {
        match self {
            Self::Unknown(RevisionError { revision, fault: RevisionFault::Unknown }) => {
                Self::Unknown(RevisionError { revision, fault })
            }
            other => other,
        }
    }
}

/// An object of the repository cannot be read, or a new one not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} cannot be {done}: {reason}")]
pub struct ReadError {
    what: String,
    done: &'static str,
    reason: String,
    fault: ObjectFault,
}

/// What keeps an object from being read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFault {
    /// It, or one that leads to it, is damaged or missing.
    Damaged,
    /// No space is left on the disk.
    DiskFull,
    /// The system refuses, such as a disk that is read-only.
    System,
    /// Something else.
    Other,
}

impl ReadError {
    pub(crate) fn new(what: impl Into<String>, reason: impl Into<String>) -> Self {
        let (what, reason) = (what.into(), reason.into());
        Self { what, done: "read", reason, fault: ObjectFault::Other }
    }

    /// What libgit2 says of something that it reads.
    pub(in crate::git) fn of(what: impl Into<String>, error: &git2::Error) -> Self {
        let fault = match (failure_of(error), error.class()) {
            (FetchFailure::CorruptObjects, _) => ObjectFault::Damaged,
            (FetchFailure::DiskFull, _) => ObjectFault::DiskFull,
            (_, git2::ErrorClass::Os | git2::ErrorClass::Filesystem) => ObjectFault::System,
            _ => ObjectFault::Other,
        };
        Self { fault, ..Self::new(what, error.message()) }
    }

    /// What libgit2 says of something that it writes.
    pub(in crate::git) fn of_writing(what: impl Into<String>, error: &git2::Error) -> Self {
        Self { done: "written", ..Self::of(what, error) }
    }

    /// Returns what keeps the object from being read or written.
    pub fn fault(&self) -> ObjectFault {
        self.fault
    }
}
