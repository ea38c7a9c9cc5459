//! The working tree in which a branch is checked out: its files and its index follow the branch.
//!
//! The index is locked as git locks it, files and index are written, and then the branch is moved: whenever this is
//! cut off, the next commit of the working tree's owner undoes nothing. The lock names the commits, so that what a
//! killed process left is put right by the next one.

mod index_lock;

use std::path::{Path, PathBuf};

use git2::ObjectType;
use git2::build::CheckoutBuilder;

use super::failure::{FetchError, FetchFailure, failure_of};
use super::object_guard::guard;
use super::push::PushError;
use super::repository::{id_of, oid};
use crate::model::CommitId;

use self::index_lock::IndexLock;
pub(super) use self::index_lock::Move;

/// A working tree.
pub(super) struct WorkingTree {
    repository: git2::Repository,
    root: PathBuf,
}

impl WorkingTree {
    /// Returns the working tree of a repository in which a branch is checked out; there may be several, linked to one
    /// repository.
    ///
    /// # Errors
    ///
    /// Returns an error if it is checked out in several, or one cannot be opened.
    pub(super) fn of(
        repository: &git2::Repository,
        branch: &str,
    ) -> Result<Option<Self>, PushError> {
        let mut found: Option<Self> = None;
        for tree in all(repository).map_err(|it| failed(&it))? {
            let head = tree.repository.find_reference("HEAD").map_err(|it| failed(&it))?;
            if !head.symbolic_target().is_ok_and(|it| it == Some(branch)) {
                continue;
            }
            if let Some(other) = &found {
                return Err(PushError::Rejected(format!(
                    "the branch is checked out in two working trees, `{}` and `{}`",
                    other.root.display(),
                    tree.root.display()
                )));
            }
            drop(head);
            found = Some(tree);
        }
        Ok(found)
    }

    /// Has the files follow a branch that `move_branch` moves; they must not have changes of their own. Where the
    /// branch is not moved, they are as before.
    ///
    /// # Errors
    ///
    /// Returns why the branch is not moved.
    pub(super) fn follow(
        &self,
        files: &[&str],
        way: &Move,
        move_branch: impl FnOnce() -> Result<(), PushError>,
    ) -> Result<(), PushError> {
        let lock = self.lock(way)?;
        let head = || self.repository.refname_to_id(&way.branch).ok().map(id_of);
        // From here on, no commit is made in this working tree.
        if head() != Some(way.from) {
            return Err(PushError::Moved);
        }
        self.check_unchanged(files)?;
        let mut safe = CheckoutBuilder::new();
        safe.safe();
        let moved = match self.check_out(&lock, way.to, files, &mut safe) {
            // Changed since it was checked: nothing is written.
            Err(error) if error.code() == git2::ErrorCode::Conflict => {
                return Err(self.has_changes(error.message()));
            }
            Err(error) => Err(failed(&error)),
            Ok(()) => move_branch(),
        };
        if moved.is_err() {
            let before = head().unwrap_or(way.from);
            if let Err(error) = self.check_out(&lock, before, files, &mut forced()) {
                tracing::error!(%error, root = %self.root.display(), "a working tree is not put back");
            }
        }
        moved
    }

    fn lock(&self, way: &Move) -> Result<IndexLock, PushError> {
        let taken = IndexLock::take(self.repository.path(), way);
        let path = self.repository.path().join("index.lock");
        taken.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => PushError::Failed(FetchError::new(
                FetchFailure::LockHeld,
                format!(
                    "another git process has the index of the working tree `{}`; if none runs, remove `{}`",
                    self.root.display(),
                    path.display()
                ),
            )),
            _ => {
                let failure = match error.kind() {
                    std::io::ErrorKind::StorageFull => FetchFailure::DiskFull,
                    _ => FetchFailure::Other,
                };
                let message = format!("`{}` cannot be written: {error}", path.display());
                PushError::Failed(FetchError::new(failure, message))
            }
        })
    }

    /// Checks that files are as the commit has them; a file that it does not have must not be there.
    fn check_unchanged(&self, files: &[&str]) -> Result<(), PushError> {
        for file in files {
            let is_unchanged = match self.repository.status_file(Path::new(file)) {
                Ok(status) => status.is_empty(),
                Err(error) => error.code() == git2::ErrorCode::NotFound && self.has_room_for(file),
            };
            if !is_unchanged {
                return Err(self.has_changes(file));
            }
        }
        Ok(())
    }

    fn has_changes(&self, what: &str) -> PushError {
        PushError::Rejected(format!(
            "the working tree `{}` has changes that are not committed: {what}",
            self.root.display()
        ))
    }

    /// Returns whether nothing stands where a file goes: neither itself, nor a file or link in place of a directory
    /// above it.
    fn has_room_for(&self, file: &str) -> bool {
        let path = Path::new(file);
        let kind = |path: &Path| self.root.join(path).symlink_metadata().map(|it| it.is_dir());
        let mut above = path.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty());
        kind(path).is_err() && above.all(|it| kind(it).unwrap_or(true))
    }

    /// Writes files and the index as a commit has them.
    fn check_out(
        &self,
        lock: &IndexLock,
        commit: CommitId,
        files: &[&str],
        checkout: &mut CheckoutBuilder<'_>,
    ) -> Result<(), git2::Error> {
        if files.is_empty() {
            return Ok(());
        }
        let io = |error: std::io::Error| git2::Error::from_str(&error.to_string());
        let copied = lock.copy_index().map_err(io)?;
        // libgit2 writes to a copy: it would not take the lock that we have.
        let mut index = git2::Index::open(&copied)?;
        // One of its own, since the index stays with it.
        let is_linked = self.repository.is_worktree();
        let place = if is_linked { self.root.as_path() } else { self.repository.path() };
        let repository = git2::Repository::open(place).and_then(guard)?;
        repository.set_index(&mut index)?;
        checkout.disable_pathspec_match(true);
        for file in files {
            checkout.path(file);
        }
        let commit = repository.find_commit(oid(commit))?;
        repository.checkout_tree(commit.as_object(), Some(checkout))?;
        lock.replace_index(&copied).map_err(io)
    }

    /// Puts right what a killed process left: files that it wrote are those of the branch again.
    fn recover(&self) -> Result<(), git2::Error> {
        let Some((lock, way)) = IndexLock::take_over(self.repository.path()) else { return Ok(()) };
        let tree = |commit| self.repository.find_commit(oid(commit)).and_then(|it| it.tree());
        let (from, to) = (tree(way.from)?, tree(way.to)?);
        let head = self.repository.find_reference(&way.branch)?.peel_to_commit()?;
        let changes = self.repository.diff_tree_to_tree(Some(&from), Some(&to), None);
        let mut files = Vec::new();
        for change in changes?.deltas() {
            let (old, new) = (change.old_file(), change.new_file());
            let Some(path) = new.path().or(old.path()).and_then(Path::to_str) else { continue };
            let found = git2::Oid::hash_file(ObjectType::Blob, self.root.join(path));
            let found = found.unwrap_or(git2::Oid::ZERO_SHA1);
            if found == old.id() || found == new.id() {
                files.push(path.to_owned());
            }
        }
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        tracing::warn!(root = %self.root.display(), "a write was cut off: its files are put right");
        self.check_out(&lock, id_of(head.id()), &files, &mut forced())
    }
}

/// Puts right what a killed process left in the working trees of a repository.
pub(super) fn recover_all(repository: &git2::Repository) {
    for tree in all(repository).unwrap_or_default() {
        if let Err(error) = tree.recover() {
            tracing::error!(%error, root = %tree.root.display(), "a working tree is not put right");
        }
    }
}

/// Returns what writes files as a commit has them, whatever is there: those that it lacks may not be in the index yet.
fn forced() -> CheckoutBuilder<'static> {
    let mut checkout = CheckoutBuilder::new();
    checkout.force().remove_untracked(true).remove_ignored(true);
    checkout
}

/// Returns the working trees of a repository: its own and those that are linked to it.
fn all(repository: &git2::Repository) -> Result<Vec<WorkingTree>, git2::Error> {
    let main = git2::Repository::open(repository.commondir()).and_then(guard)?;
    let mut found = Vec::new();
    for name in &main.worktrees()? {
        let Some(name) = name.ok().flatten() else { continue };
        let linked = main.find_worktree(name)?;
        // One that was removed by hand has no files to follow.
        if linked.path().exists() {
            found.push(git2::Repository::open_from_worktree(&linked).and_then(guard)?);
        }
    }
    found.push(main);
    let trees = found.into_iter().filter_map(|repository| {
        let root = repository.workdir()?.to_owned();
        Some(WorkingTree { repository, root })
    });
    Ok(trees.collect())
}

fn failed(error: &git2::Error) -> PushError {
    let failure = match failure_of(error) {
        failure @ (FetchFailure::DiskFull | FetchFailure::LockHeld) => failure,
        _ => FetchFailure::Other,
    };
    PushError::Failed(FetchError::new(failure, error.message()))
}
