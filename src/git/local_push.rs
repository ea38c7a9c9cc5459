//! Pushing into a repository on this machine: its hooks, and what is done where there is no `git` to run them.

use std::path::Path;
use std::time::Duration;

use git2::ErrorCode;

use super::durable::{check_branch, sync_branch, sync_commits};
use super::failure::{FetchError, FetchFailure, failure_of};
use super::object_id::oid;
use super::push_error::PushError;
use super::refs::referent;
use super::regular_file::is_special;
use crate::model::CommitId;

/// How often a branch is tried whose lock another process has, and how long it takes until the next time: `git pack-refs`
/// has it for milliseconds.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// Returns whether pushes to the repository in a directory run hooks.
pub(super) fn has_hooks(directory: &Path) -> bool {
    has_own_hooks(directory) || has_other_hooks(directory)
}

fn has_own_hooks(directory: &Path) -> bool {
    const HOOKS: [&str; 6] = [
        "pre-receive",
        "update",
        "proc-receive",
        "post-receive",
        "post-update",
        "reference-transaction",
    ];
    HOOKS.iter().any(|hook| {
        directory.join("hooks").join(hook).exists()
            || directory.join(".git/hooks").join(hook).exists()
    })
}

/// Returns whether the configuration of a repository names a directory of hooks elsewhere.
fn has_other_hooks(directory: &Path) -> bool {
    let settings = git2::Repository::open(directory).and_then(|it| it.config());
    settings.is_ok_and(|it| it.get_entry("core.hooksPath").is_ok())
}

/// Moves a branch from `expected` to a commit that is in the repository; none is for a new branch. A branch that names
/// another one moves that one, as with git. Then both are on the disk.
///
/// # Errors
///
/// Returns why the branch is not moved, or not known to be.
pub(super) fn move_branch(
    repository: &git2::Repository,
    branch: &str,
    commit: CommitId,
    expected: Option<CommitId>,
) -> Result<(), PushError> {
    let branch = expected.map_or_else(|| branch.to_owned(), |_| referent(repository, branch));
    let log = repository.commondir().join("logs").join(&branch);
    if is_special(&log) {
        let message = format!("`{}` is not a regular file: remove it", log.display());
        return Err(PushError::Failed(FetchError::new(FetchFailure::Other, message)));
    }
    check_branch(repository, &branch).map_err(PushError::Failed)?;
    // Before the branch: one that names what is not there would be lost with the machine.
    sync_commits(repository, commit, expected).map_err(PushError::Failed)?;
    let move_once = || match expected.map(oid) {
        Some(expected) => {
            repository.reference_matching(&branch, oid(commit), true, expected, "clade: write")
        }
        None => repository.reference(&branch, oid(commit), false, "clade: write"),
    };
    let mut moved = move_once();
    for _ in 1..TRIES {
        if !moved.as_ref().is_err_and(|it| failure_of(it) == FetchFailure::LockHeld) {
            break;
        }
        std::thread::sleep(PAUSE);
        moved = move_once();
    }
    match moved {
        Ok(_) => sync_branch(repository, &branch).map_err(PushError::Unknown),
        Err(error) if matches!(error.code(), ErrorCode::Modified | ErrorCode::Exists) => {
            Err(PushError::Moved)
        }
        Err(error) => Err(PushError::Failed(FetchError::new(failure_of(&error), error.message()))),
    }
}
