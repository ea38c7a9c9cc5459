//! Why a repository, a revision or an object cannot be read.

use std::path::{Path, PathBuf};

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
    pub(in crate::git) fn of(path: &Path, error: &git2::Error) -> Self {
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
    pub(in crate::git) fn new(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { what: what.into(), reason: reason.into() }
    }
}
