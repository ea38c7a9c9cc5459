//! The working tree in which a branch is checked out: its files and its index follow the branch.
//!
//! The index is locked as git locks it, files and index are written, and then the branch is moved: whenever this is
//! cut off, the next commit of the working tree's owner undoes nothing. The lock names the commits, so that what a
//! killed process left is put right by the next one.
#![expect(clippy::disallowed_methods, reason = "the files of a working tree are the owner's")]

mod attributes;
mod index_lock;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use git2::build::CheckoutBuilder;

use super::failure::{FetchError, FetchFailure, failure_of};
use super::move_lock::{self, Move};
use super::object_guard::guard;
use super::object_id::{id_of, oid};
use super::push_error::PushError;
use super::refs::referent;
use super::regular_file::is_special;
use crate::model::CommitId;

use self::attributes::written_by_git_alone;
use self::index_lock::IndexLock;

/// More bytes than a file has that writes change: a document of 1 MiB, each of whose lines ends with two characters.
const LARGEST: u64 = 2 << 20;

/// A working tree.
pub(super) struct CheckedOut {
    repository: git2::Repository,
    root: PathBuf,
}

impl CheckedOut {
    /// Returns the working tree of a repository in which a branch is checked out; there may be several, linked to one
    /// repository. The branch is one that names a commit, and not another branch.
    ///
    /// # Errors
    ///
    /// Returns an error if it is checked out in several, one cannot be opened, or it is rebased in one: then git puts it
    /// back where it was, whatever was written to it meanwhile.
    pub(super) fn of(
        repository: &git2::Repository,
        branch: &str,
    ) -> Result<Option<Self>, PushError> {
        let mut found: Option<Self> = None;
        for place in Place::all(repository).map_err(|it| failed(&it))? {
            if place.is_rebasing(branch) {
                let directory = place.directory().display();
                let message = format!("the branch is being rebased (`{directory}`)");
                return Err(busy(message));
            }
            if branch_in(repository, place.directory()).as_deref() != Some(branch) {
                continue;
            }
            let Some(tree) = place.open()? else { continue };
            if let Some(other) = &found {
                return Err(PushError::Rejected(format!(
                    "the branch is checked out in two working trees, `{}` and `{}`",
                    other.root.display(),
                    tree.root.display()
                )));
            }
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
        planned: &Move,
        move_branch: impl FnOnce() -> Result<(), PushError>,
    ) -> Result<(), PushError> {
        let lock = IndexLock::take(self.repository.path(), planned).map_err(PushError::Failed)?;
        let head = || self.repository.refname_to_id(&planned.branch).ok().map(id_of);
        // From here on, no commit is made in this working tree, and it is not switched to another branch.
        let checked_out = branch_in(&self.repository, self.repository.path());
        let is_there = checked_out.as_deref() == Some(&*planned.branch);
        if !is_there || head() != Some(planned.from) {
            return Err(PushError::Moved);
        }
        self.check_unchanged(files)?;
        let mut safe = CheckoutBuilder::new();
        safe.safe();
        let moved = match self.check_out(&lock, planned.to, files, &mut safe) {
            // Changed since it was checked: nothing is written.
            Err(error @ PushError::Rejected(_)) => return Err(error),
            written => written.and_then(|()| move_branch()),
        };
        if moved.is_err() {
            // Where it may have moved all the same, the files are as it is.
            let before = head().unwrap_or(planned.from);
            if let Err(error) = self.check_out(&lock, before, files, &mut forced()) {
                tracing::error!(%error, root = %self.root.display(), "a working tree is not put back");
            }
        }
        moved
    }

    /// Checks that files are as the commit has them; a file that it does not have must not be there.
    fn check_unchanged(&self, files: &[&str]) -> Result<(), PushError> {
        self.check_attributes(files)?;
        self.check_conversions(files)?;
        for file in files {
            let is_unchanged = match self.repository.status_file(Path::new(file)) {
                Ok(status) => status.is_empty(),
                Err(error) => match error.code() {
                    git2::ErrorCode::NotFound => self.has_room_for(file),
                    git2::ErrorCode::Ambiguous => false,
                    _ => {
                        let root = self.root.display();
                        let message = format!(
                            "the index of the working tree `{root}` cannot be read: {}",
                            error.message()
                        );
                        return Err(PushError::Failed(FetchError::new(
                            FetchFailure::Other,
                            message,
                        )));
                    }
                },
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

    /// Writes files and the index as a commit has them, and brings them to the disk.
    ///
    /// # Errors
    ///
    /// Returns that the files are changed, or why something cannot be written.
    fn check_out(
        &self,
        lock: &IndexLock,
        commit: CommitId,
        files: &[&str],
        checkout: &mut CheckoutBuilder<'_>,
    ) -> Result<(), PushError> {
        if files.is_empty() {
            return Ok(());
        }
        let io = |error: std::io::Error| {
            PushError::Failed(FetchError::new(FetchFailure::Other, error.to_string()))
        };
        let copied = lock.copy_index().map_err(io)?;
        self.write_files(&copied, commit, files, checkout).map_err(|error| match error.code() {
            git2::ErrorCode::Conflict => self.has_changes(error.message()),
            _ => failed(&error),
        })?;
        // Directories may be new, or gone.
        let parts: BTreeSet<&Path> =
            files.iter().flat_map(|it| Path::new(it).ancestors()).collect();
        let below_root = parts.into_iter().filter(|it| !it.as_os_str().is_empty());
        let files = below_root.map(|it| self.root.join(it)).collect();
        lock.replace_index(&copied, files).map_err(PushError::Failed)
    }

    /// Writes files, and the copy of an index, as a commit has them.
    fn write_files(
        &self,
        copied: &Path,
        commit: CommitId,
        files: &[&str],
        checkout: &mut CheckoutBuilder<'_>,
    ) -> Result<(), git2::Error> {
        // libgit2 writes to a copy: it would not take the lock that we have.
        let mut index = git2::Index::open(copied)?;
        // One of its own, since the index stays with it.
        let is_linked = self.repository.is_worktree();
        let place = if is_linked { self.root.as_path() } else { self.repository.path() };
        let repository = git2::Repository::open(place).and_then(guard)?;
        if !is_linked {
            repository.set_workdir(&self.root, false)?;
        }
        repository.set_index(&mut index)?;
        checkout.disable_pathspec_match(true);
        for file in files {
            checkout.path(file);
        }
        let commit = repository.find_commit(oid(commit))?;
        repository.checkout_tree(commit.as_object(), Some(checkout))
    }

    /// Checks what libgit2 reads beside files before it reads or writes them: it would wait for a writer to a pipe.
    fn check_attributes(&self, files: &[&str]) -> Result<(), PushError> {
        for directory in files.iter().flat_map(|it| Path::new(it).ancestors().skip(1)) {
            for name in [".gitattributes", ".gitignore"] {
                let path = self.root.join(directory).join(name);
                if is_special(&path) {
                    let message = format!("`{}` is not a regular file: remove it", path.display());
                    return Err(PushError::Failed(FetchError::new(FetchFailure::Other, message)));
                }
            }
        }
        Ok(())
    }

    /// Checks that libgit2 writes the files as git would.
    fn check_conversions(&self, files: &[&str]) -> Result<(), PushError> {
        for file in files {
            let found = written_by_git_alone(&self.repository, Path::new(file));
            if let Some(attribute) = found.map_err(|it| failed(&it))? {
                return Err(PushError::Rejected(format!(
                    "the file {file} of the working tree `{}` has the attribute `{attribute}`, by which git alone \
                     writes it: remove the attribute, change the file with git, or check out another branch there",
                    self.root.display()
                )));
            }
        }
        Ok(())
    }

    /// Puts right what a killed process left: files that it wrote are those of the branch again.
    fn recover(&self) -> Result<(), PushError> {
        let Some((lock, planned)) = IndexLock::take_over(self.repository.path()) else {
            return Ok(());
        };
        planned.remove_ref_lock(self.repository.commondir());
        let (head, files) = self.cut_off(&planned).map_err(|it| failed(&it))?;
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        self.check_attributes(&files)?;
        tracing::warn!(root = %self.root.display(), "a write was cut off: its files are put right");
        self.check_out(&lock, head, &files, &mut forced())
    }

    /// Returns the commit at which a branch is whose move was cut off, and the files that were written for that.
    fn cut_off(&self, planned: &Move) -> Result<(CommitId, Vec<String>), git2::Error> {
        let tree = |commit| self.repository.find_commit(oid(commit)).and_then(|it| it.tree());
        let (from, to) = (tree(planned.from)?, tree(planned.to)?);
        let head = self.repository.find_reference(&planned.branch)?.peel_to_commit()?;
        let changes = self.repository.diff_tree_to_tree(Some(&from), Some(&to), None);
        let mut files = Vec::new();
        for change in changes?.deltas() {
            let (old, new) = (change.old_file(), change.new_file());
            let Some(path) = new.path().or(old.path()).and_then(Path::to_str) else { continue };
            if self.is_written(path, &[old.id(), new.id()]) {
                files.push(path.to_owned());
            }
        }
        Ok((id_of(head.id()), files))
    }

    /// Returns whether a file is one of some blobs, or what is there while one is written: its beginning, or nothing.
    fn is_written(&self, path: &str, blobs: &[git2::Oid]) -> bool {
        let path = self.root.join(path);
        match path.symlink_metadata() {
            Ok(it) if it.is_file() && it.len() <= LARGEST => {}
            Ok(_) => return false,
            Err(error) => return error.kind() == std::io::ErrorKind::NotFound,
        }
        let Ok(found) = std::fs::read(&path) else { return false };
        let stored = with_line_feeds(&found);
        blobs.iter().any(|id| {
            self.repository.find_blob(*id).is_ok_and(|it| {
                it.content().starts_with(&found) || it.content().starts_with(&stored)
            })
        })
    }
}

/// Returns a text as git stores it where it writes line feeds with carriage returns before them; of the last pair, only
/// the first may be there.
fn with_line_feeds(text: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(text.len());
    for (at, byte) in text.iter().enumerate() {
        if *byte != b'\r' || text.get(at + 1).is_some_and(|it| *it != b'\n') {
            stored.push(*byte);
        }
    }
    stored
}

/// Puts right what a killed process left in the working trees of a repository.
pub(super) fn recover_all(repository: &git2::Repository) {
    for place in Place::all(repository).unwrap_or_default() {
        IndexLock::remove_unfinished(place.directory());
        if !IndexLock::is_ours(place.directory()) {
            continue;
        }
        let recovered = place.open().and_then(|tree| match tree {
            Some(tree) => tree.recover(),
            None => Ok(()),
        });
        if let Err(error) = recovered {
            let directory = place.directory().display();
            tracing::error!(%error, %directory, "a working tree is not put right");
        }
    }
}

/// Returns what writes files as a commit has them, whatever is there: those that it lacks may not be in the index yet.
fn forced() -> CheckoutBuilder<'static> {
    let mut checkout = CheckoutBuilder::new();
    checkout.force().remove_untracked(true).remove_ignored(true);
    checkout
}

/// Where git keeps the HEAD and the index of a working tree, which need not be opened to see them.
enum Place {
    /// A repository's own.
    Main { directory: PathBuf, root: PathBuf },
    /// One that is linked to it.
    Linked(PathBuf, git2::Worktree),
}

impl Place {
    fn all(repository: &git2::Repository) -> Result<Vec<Self>, git2::Error> {
        let common = repository.commondir();
        let main = git2::Repository::open(common)?;
        let mut found = Vec::new();
        for name in &main.worktrees()? {
            let Some(name) = name.ok().flatten() else { continue };
            found
                .push(Self::Linked(common.join("worktrees").join(name), main.find_worktree(name)?));
        }
        // A directory of git that stands elsewhere does not say where its working tree is.
        let root = if repository.is_worktree() { main.workdir() } else { repository.workdir() };
        if let Some(root) = root.filter(|_| !main.is_bare()) {
            found.push(Self::Main { directory: common.to_owned(), root: root.to_owned() });
        }
        Ok(found)
    }

    fn directory(&self) -> &Path {
        match self {
            Self::Main { directory, .. } | Self::Linked(directory, _) => directory,
        }
    }

    /// Returns whether a branch is being rebased here: git moves it at the end, or back.
    fn is_rebasing(&self, branch: &str) -> bool {
        let names =
            ["rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs"];
        names.iter().any(|name| {
            let text = std::fs::read_to_string(self.directory().join(name)).unwrap_or_default();
            text.lines().any(|it| it.trim() == branch)
        })
    }

    /// Opens the working tree; none if the repository has none.
    fn open(&self) -> Result<Option<CheckedOut>, PushError> {
        let opened = match self {
            Self::Main { directory, root } => git2::Repository::open(directory)
                .and_then(|it| it.set_workdir(root, false).map(|()| it)),
            Self::Linked(_, linked) => match linked.path().try_exists() {
                Ok(true) => git2::Repository::open_from_worktree(linked),
                Ok(false) => return Err(missing(linked.path())),
                Err(error) => {
                    let path = linked.path().display();
                    let message = format!("the working tree `{path}` cannot be opened: {error}");
                    return Err(PushError::Failed(FetchError::new(FetchFailure::Other, message)));
                }
            },
        };
        let repository = opened.and_then(guard).map_err(|it| failed(&it))?;
        let root = repository.workdir().map(Path::to_owned);
        Ok(root.map(|root| CheckedOut { repository, root }))
    }
}

/// Returns the full name of the branch that the HEAD in a directory of git leads to; none where it names a commit.
fn branch_in(repository: &git2::Repository, directory: &Path) -> Option<String> {
    let head = std::fs::read_to_string(directory.join("HEAD")).ok()?;
    Some(referent(repository, head.strip_prefix("ref:")?.trim()))
}

/// Waits a second until no other process has the index of a working tree: it may be about to check a branch out.
///
/// # Errors
///
/// Returns an error if one still has it.
pub(super) fn wait_for_others(repository: &git2::Repository) -> Result<(), PushError> {
    for place in Place::all(repository).map_err(|it| failed(&it))? {
        let lock = place.directory().join("index.lock");
        if !move_lock::is_released(&lock) {
            let lock = lock.display();
            return Err(busy(format!("another git process runs; if none does, remove `{lock}`")));
        }
    }
    Ok(())
}

fn busy(message: String) -> PushError {
    PushError::Failed(FetchError::new(FetchFailure::LockHeld, message))
}

/// A working tree may have been moved, or its disk not be there: git refuses as well.
fn missing(path: &Path) -> PushError {
    PushError::Rejected(format!(
        "the branch is checked out in the working tree `{}`, which is not there: run `git worktree repair` if it was \
         moved, or `git worktree prune` if it was removed",
        path.display()
    ))
}

fn failed(error: &git2::Error) -> PushError {
    let failure = match failure_of(error) {
        failure @ (FetchFailure::DiskFull | FetchFailure::LockHeld) => failure,
        _ => FetchFailure::Other,
    };
    PushError::Failed(FetchError::new(failure, error.message()))
}
