//! Why no commit is live, for every caller.

use super::{Progress, ReconcileState};
use crate::git::FetchFailure;

/// Why no commit is live. Callers without any right are answered with it, so it names nothing of the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSnapshotCause {
    /// The branch was not seen since the start.
    #[error("the branch was not fetched yet")]
    NotFetched,
    /// The repository has no such branch, or no commit.
    #[error(
        "the branch is not there: commit the files, and push them if the repository is elsewhere, or correct `--branch`"
    )]
    NoBranch,
    /// The branch cannot be fetched.
    #[error("the branch cannot be fetched")]
    FetchFailed,
    /// Its newest commit is not ready.
    #[error("its newest commit is being built")]
    Building,
    /// Its newest commit never answers.
    #[error("its newest commit is rejected")]
    Rejected,
    /// Its newest commit cannot be read, which another fetch may change.
    #[error("its newest commit cannot be read; it is built again after each fetch")]
    Unreadable,
    /// Its newest commit may not answer yet.
    #[error("its newest commit waits for an operator")]
    Held,
}

impl ReconcileState {
    /// Returns why no commit is live.
    pub(in crate::reconcile) fn why_no_snapshot(&self) -> NoSnapshotCause {
        if self.unread().is_some() {
            return NoSnapshotCause::Unreadable;
        }
        match (self.candidate.as_ref().map(|it| &it.progress), &self.failure) {
            (Some(Progress::Pending | Progress::Building), _) => NoSnapshotCause::Building,
            (Some(Progress::Failed(..)), _) => NoSnapshotCause::Rejected,
            (Some(Progress::Held), _) => NoSnapshotCause::Held,
            (None, Some((FetchFailure::RefNotFound, _))) => NoSnapshotCause::NoBranch,
            (None, Some(_)) => NoSnapshotCause::FetchFailed,
            (None, None) => NoSnapshotCause::NotFetched,
        }
    }
}
