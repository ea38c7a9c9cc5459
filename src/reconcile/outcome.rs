//! The outcome of a build.

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Kind, Severity, first_error};
use crate::git::ReadError;
use crate::model::CommitId;
use crate::snapshot::Snapshot;

/// What a build found out about a commit.
#[derive(Clone, Debug)]
pub enum Outcome<S = Arc<Snapshot>> {
    /// The commit is valid.
    Valid(S),
    /// The commit is not valid, and is never served.
    Rejected(Arc<Rejected>),
}

impl Outcome {
    /// Returns the commit.
    pub(super) fn commit(&self) -> CommitId {
        match self {
            Self::Valid(snapshot) => snapshot.commit,
            Self::Rejected(rejected) => rejected.commit,
        }
    }

    /// Returns whether the commit exceeds the budget, so that a larger one may decide otherwise.
    pub(super) fn is_too_large(&self) -> bool {
        match self {
            Self::Valid(_) => false,
            Self::Rejected(rejected) => {
                rejected.diagnostics.iter().any(|it| it.kind == Kind::CommitTooLarge)
            }
        }
    }
}

impl<S> Outcome<S> {
    /// Returns the outcome with another form of its snapshot.
    pub(super) fn map<T>(self, form: impl FnOnce(S) -> T) -> Outcome<T> {
        match self {
            Self::Valid(snapshot) => Outcome::Valid(form(snapshot)),
            Self::Rejected(rejected) => Outcome::Rejected(rejected),
        }
    }

    /// Returns the snapshot, or the findings that reject the commit.
    pub(super) fn into_result(self) -> Result<S, Arc<Rejected>> {
        match self {
            Self::Valid(snapshot) => Ok(snapshot),
            Self::Rejected(rejected) => Err(rejected),
        }
    }
}

/// A commit that is not valid.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// The commit.
    pub commit: CommitId,
    /// The findings, warnings included.
    pub diagnostics: Vec<Arc<Diagnostic>>,
}

impl Rejected {
    /// Returns the findings that are errors.
    pub(super) fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().map(Arc::as_ref).filter(|it| it.severity == Severity::Error)
    }
}

/// No snapshot was built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A commit could not be read.
    #[error("the commit {commit} cannot be read")]
    Unreadable {
        /// The commit.
        commit: CommitId,
        /// Why.
        #[source]
        source: ReadError,
    },
    /// Too many requests wait for other commits to be built.
    #[error("other commits are being built: try again soon")]
    Busy,
    /// A newer commit took its place.
    #[error("the commit {0} is superseded")]
    Cancelled(CommitId),
}

/// Returns the first error with its place, and how many more there are.
pub(super) fn summary(diagnostics: &[Arc<Diagnostic>]) -> String {
    first_error(diagnostics).unwrap_or_else(|| "not valid".to_owned())
}
