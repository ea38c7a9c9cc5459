//! Moving the branch to a commit, and bringing it to the disk.

use super::{Source, Target, full_name};
use crate::git::{PushError, Repository, ResolveError};
use crate::model::CommitId;

/// The branch that writes go to.
pub(in crate::reconcile) struct WriteBranch {
    /// Its full name, `refs/heads/…`; none where the followed ref is not a branch.
    pub(in crate::reconcile) name: Option<String>,
    /// Its newest commit; none before the first fetch.
    pub(in crate::reconcile) head: Option<CommitId>,
}

impl Source {
    /// Moves the branch to a commit, if it is still where the caller believes it is. `files` are the
    /// files that the commit changes, from the root of the groups. Blocking.
    ///
    /// # Errors
    ///
    /// Returns why the branch is not moved, or that this is not known.
    pub(in crate::reconcile) fn push<'f>(
        &self,
        repository: &Repository,
        branch: &str,
        commit: CommitId,
        expected: CommitId,
        files: impl Iterator<Item = &'f String>,
    ) -> Result<(), PushError> {
        let pushed = match &self.target {
            Target::Remote(mirror) => mirror.push(branch, commit, Some(expected), self.branch()),
            Target::Local(_) => {
                let mut files: Vec<String> = files.map(|path| self.path_of(path)).collect();
                files.sort_unstable();
                files.dedup();
                let files: Vec<&str> = files.iter().map(String::as_str).collect();
                repository.advance(branch, commit, Some(expected), &files, &self.transport)
            }
        };
        if matches!(pushed, Err(PushError::Unknown(_))) {
            self.unsynced.lock().get_or_insert(expected);
        }
        pushed
    }

    /// Brings to the disk what an earlier push may have left off it, before a client is told that it is there. Blocking.
    ///
    /// # Errors
    ///
    /// Returns that this is not known to be done.
    pub(in crate::reconcile) fn settle(
        &self,
        repository: &Repository,
        branch: &str,
        head: CommitId,
    ) -> Result<(), PushError> {
        let mut unsynced = self.unsynced.lock();
        if let Some(since) = *unsynced {
            self.sync(repository, branch, head, Some(since))?;
            *unsynced = None;
        }
        Ok(())
    }

    /// Brings to the disk a branch that was pushed before, with its commits since another, or the last alone: whether
    /// that push did is not known. Blocking.
    ///
    /// # Errors
    ///
    /// Returns that this is not known to be done.
    pub(in crate::reconcile) fn sync(
        &self,
        repository: &Repository,
        branch: &str,
        head: CommitId,
        since: Option<CommitId>,
    ) -> Result<(), PushError> {
        match &self.target {
            Target::Remote(mirror) => mirror.sync(branch, head, since),
            Target::Local(_) => repository.sync(branch, head, since),
        }
    }

    /// Makes a branch for a commit, beside the one that is followed. Blocking.
    ///
    /// # Errors
    ///
    /// Returns why there is no such branch; [`PushError::Moved`] if there was one before.
    pub(in crate::reconcile) fn push_new_branch(
        &self,
        repository: &Repository,
        branch: &str,
        commit: CommitId,
    ) -> Result<(), PushError> {
        match &self.target {
            Target::Remote(mirror) => mirror.push(branch, commit, None, None),
            Target::Local(_) => repository.advance(branch, commit, None, &[], &self.transport),
        }
    }

    /// Returns the branch that writes go to; `observed` is where the last fetch found it.
    ///
    /// # Errors
    ///
    /// Returns an error if a repository of this machine does not have it.
    pub(in crate::reconcile) fn write_branch(
        &self,
        repository: &Repository,
        observed: Option<CommitId>,
    ) -> Result<WriteBranch, ResolveError> {
        let (name, head) = match &self.target {
            Target::Local(_) => {
                let branch = self.branch();
                let head = repository.branch_head(branch)?;
                (branch.map(str::to_owned).or_else(|| repository.head_ref()), Some(head))
            }
            Target::Remote(_) => (repository.head_ref(), observed),
        };
        let name = name.map(full_name).filter(|it| it.starts_with("refs/heads/"));
        Ok(WriteBranch { name, head })
    }
}
