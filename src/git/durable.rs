//! What was written is brought to the disk before a client is told of it. libgit2 leaves that to the system.
#![expect(clippy::disallowed_methods, reason = "what git keeps are files")]

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use git2::{ObjectType, Oid};

use super::failure::{FetchError, FetchFailure};
use super::object_guard::guard;
use super::object_id::oid;
use super::own_files::open_checked;
use super::refs::referent;
use crate::config::is_sync_unsupported;
use crate::model::CommitId;

/// How many files are synced at once: a disk takes as long for all of them as for one.
const AT_ONCE: usize = 16;

/// Above so many files their whole file system is synced, which is faster.
const MANY: usize = 256;

/// Syncs files, and the directories that they are in. Those that are not there any more were moved by another process,
/// such as `git gc`, which syncs the packs that it writes.
///
/// # Errors
///
/// Returns an error that names the file that could not be synced.
pub(super) fn sync_files(files: &[PathBuf]) -> Result<(), FetchError> {
    let mut all: BTreeSet<&Path> = files.iter().filter_map(|it| it.parent()).collect();
    all.extend(files.iter().map(PathBuf::as_path));
    let all = Vec::from_iter(all);
    let synced = if all.len() > MANY { sync_file_systems(&all) } else { sync_each(&all) };
    synced.map_err(|(path, error)| failed(&path, &error))
}

type SyncError = (PathBuf, io::Error);

fn sync_each(paths: &[&Path]) -> Result<(), SyncError> {
    let sync = |path: &&Path| present(path, File::open(path).and_then(|it| it.sync_all()));
    let sync_share = |paths: &[&Path]| paths.iter().try_for_each(sync);
    let share = paths.len().div_ceil(AT_ONCE).max(1);
    thread::scope(|scope| {
        let start = |share| {
            let thread = thread::Builder::new().spawn_scoped(scope, move || sync_share(share));
            thread.map_err(|_| share)
        };
        let shares: Vec<_> = paths.chunks(share).map(start).collect();
        let panicked = || Err((PathBuf::new(), io::Error::other("a thread panicked")));
        shares.into_iter().try_for_each(|started| match started {
            Ok(thread) => thread.join().unwrap_or_else(|_| panicked()),
            // The system gives no more threads.
            Err(share) => sync_share(share),
        })
    })
}

/// Other systems cannot sync one file system.
#[cfg(not(target_os = "linux"))]
fn sync_file_systems(paths: &[&Path]) -> Result<(), SyncError> {
    sync_each(paths)
}

#[cfg(target_os = "linux")]
fn sync_file_systems(paths: &[&Path]) -> Result<(), SyncError> {
    use std::os::unix::fs::MetadataExt as _;

    let mut synced = HashSet::new();
    for path in paths {
        let mut sync = || -> io::Result<()> {
            let file = File::open(path)?;
            if synced.insert(file.metadata()?.dev()) {
                rustix::fs::syncfs(&file)?;
            }
            Ok(())
        };
        match sync() {
            // One that can only sync single files.
            Err(error) if is_sync_unsupported(&error) => return sync_each(paths),
            synced => present(path, synced)?,
        }
    }
    Ok(())
}

/// Takes what is not there, and file systems that sync no directories, for synced.
fn present(path: &Path, synced: io::Result<()>) -> Result<(), SyncError> {
    match synced {
        Err(error) if error.kind() != io::ErrorKind::NotFound && !is_sync_unsupported(&error) => {
            Err((path.to_owned(), error))
        }
        _ => Ok(()),
    }
}

/// How many commits at most are pushed at once, and more.
const COMMITS: usize = 1_000;

/// Syncs what some commits add, as far as it is in files of its own, and the names of packs: a commit and those before
/// it, up to the one that a branch was at; of a new branch, the commit alone.
///
/// # Errors
///
/// Returns an error if an object cannot be read or synced.
pub(super) fn sync_commits(
    repository: &git2::Repository,
    commit: CommitId,
    since: Option<CommitId>,
) -> Result<(), FetchError> {
    let objects = repository.commondir().join("objects");
    let file_of = |id: Oid| {
        let id = id.to_string();
        let (directory, name) = id.split_at(2);
        objects.join(directory).join(name)
    };
    let mut added = BTreeSet::new();
    let mut next = Some(oid(commit));
    let most = if since.is_some() { COMMITS } else { 1 };
    for _ in 0..most {
        let Some(id) = next.filter(|it| Some(*it) != since.map(oid)) else { break };
        next = match add_objects(repository, id, &mut added) {
            Ok(parent) => parent,
            // Another history than the one that was written: one far behind may be malformed.
            Err(_) if id != oid(commit) => break,
            Err(error) => {
                return Err(FetchError::new(FetchFailure::Other, error.message().to_owned()));
            }
        };
    }
    let mut files: Vec<PathBuf> = added.into_iter().map(file_of).filter(|it| it.exists()).collect();
    // The directory of the first two digits may be new as well.
    let directories: BTreeSet<PathBuf> =
        files.iter().filter_map(|it| it.parent()).map(Path::to_owned).collect();
    files.extend(directories);
    files.push(objects.join("pack"));
    sync_files(&files)
}

/// Adds the objects of a commit that its first parent does not have in the same place, and returns that parent.
fn add_objects(
    repository: &git2::Repository,
    commit: Oid,
    added: &mut BTreeSet<Oid>,
) -> Result<Option<Oid>, git2::Error> {
    let commit = repository.find_commit(commit)?;
    let before = commit.parent(0).and_then(|it| it.tree()).ok();
    added.insert(commit.id());
    let mut waiting = vec![(commit.tree()?, before)];
    while let Some((tree, before)) = waiting.pop() {
        if before.as_ref().is_some_and(|it| it.id() == tree.id()) {
            continue;
        }
        added.insert(tree.id());
        for entry in &tree {
            let old = before.as_ref().and_then(|it| it.get_name_bytes(entry.name_bytes()));
            if old.as_ref().is_some_and(|it| it.id() == entry.id()) {
                continue;
            }
            match entry.kind() {
                Some(ObjectType::Tree) => {
                    let old = old.and_then(|it| repository.find_tree(it.id()).ok());
                    waiting.push((repository.find_tree(entry.id())?, old));
                }
                Some(ObjectType::Blob) => drop(added.insert(entry.id())),
                _ => {}
            }
        }
    }
    Ok(commit.parent_id(0).ok())
}

/// Syncs a branch that was moved.
///
/// # Errors
///
/// Returns an error if it cannot be synced.
pub(super) fn sync_branch(repository: &git2::Repository, branch: &str) -> Result<(), FetchError> {
    sync_files(&files_of_branch(repository, branch))
}

/// Checks that the directories can be opened that are synced once a branch is moved: else it would be moved, and not known
/// to be on the disk. Those that are not there yet are made by the move.
///
/// # Errors
///
/// Returns an error that names the directory that cannot be opened.
pub(super) fn check_branch(repository: &git2::Repository, branch: &str) -> Result<(), FetchError> {
    let packs = repository.commondir().join("objects/pack");
    let files = files_of_branch(repository, branch);
    let parents = files.iter().filter_map(|it| it.parent());
    let all: BTreeSet<&Path> = parents.chain(packs.parent()).chain([&*packs]).collect();
    let mut opened = all.into_iter().map(|it| present(it, File::open(it).map(drop)));
    opened.try_for_each(|it| it.map_err(|(path, error)| failed(&path, &error)))
}

/// Returns the files that a branch may be in, and the directories above it.
fn files_of_branch(repository: &git2::Repository, branch: &str) -> Vec<PathBuf> {
    let directory = repository.commondir();
    // Another process may have moved the branch there meanwhile, which git does not sync.
    let mut files = vec![directory.join("packed-refs")];
    // Those of a name with slashes may be new as well.
    let mut path = Path::new(branch);
    while let Some(parent) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        files.push(directory.join(path));
        path = parent;
    }
    files
}

/// Syncs what was written for a branch since a commit, and then the branch.
///
/// # Errors
///
/// Returns an error if something cannot be read or synced.
pub(super) fn sync_written(
    repository: &git2::Repository,
    branch: &str,
    commit: CommitId,
    since: Option<CommitId>,
) -> Result<(), FetchError> {
    sync_commits(repository, commit, since)?;
    sync_branch(repository, &referent(repository, branch))
}

/// Syncs what git wrote to the repository in a directory for a commit that it moved a branch to: git syncs files, and not
/// the directories that name them.
///
/// # Errors
///
/// Returns an error if the repository cannot be opened, or something cannot be synced.
pub(super) fn sync_pushed(
    directory: &Path,
    branch: &str,
    commit: CommitId,
    since: Option<CommitId>,
) -> Result<(), FetchError> {
    sync_written(&open(directory)?, branch, commit, since)
}

/// Checks before git moves a branch of the repository in a directory that it can be synced then.
///
/// # Errors
///
/// Returns an error if the repository cannot be opened, or names the directory that cannot be.
pub(super) fn check_before_push(directory: &Path, branch: &str) -> Result<(), FetchError> {
    let repository = open(directory)?;
    check_branch(&repository, &referent(&repository, branch))
}

fn open(directory: &Path) -> Result<git2::Repository, FetchError> {
    let repository = open_checked(directory).and_then(guard);
    repository.map_err(|error| FetchError::new(FetchFailure::Other, error.message().to_owned()))
}

/// The packs of a repository.
pub(super) struct Packs {
    directory: PathBuf,
    files: HashSet<PathBuf>,
}

impl Packs {
    /// Notes which packs a repository has.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be listed.
    pub(super) fn of(repository: &git2::Repository) -> Result<Self, FetchError> {
        let directory = repository.commondir().join("objects/pack");
        let files = list(&directory)?.into_iter().collect();
        Ok(Self { directory, files })
    }

    /// Syncs those that were added since.
    ///
    /// # Errors
    ///
    /// Returns an error if they cannot be listed or synced.
    pub(super) fn sync_added(&self) -> Result<(), FetchError> {
        let mut files = list(&self.directory)?;
        files.retain(|it| !self.files.contains(it));
        sync_files(&files)
    }
}

fn list(directory: &Path) -> Result<Vec<PathBuf>, FetchError> {
    let listed = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.and_then(|it| it.map(|it| Ok(it?.path())).collect()),
    };
    listed.map_err(|error| failed(directory, &error))
}

fn failed(path: &Path, error: &io::Error) -> FetchError {
    FetchError::of_file(path, "brought to the disk", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_files_are_synced_and_an_error_names_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&link, &link).unwrap();
        for count in [1, AT_ONCE + 1, MANY + 1] {
            let named = |it: usize| directory.path().join(format!("file-{it}"));
            let mut files: Vec<_> = (0..count).map(named).collect();
            for file in &files {
                fs::write(file, "text").unwrap();
            }
            files.push(directory.path().join("absent/file"));
            files.push(PathBuf::from("/dev/null"));
            assert_eq!(sync_files(&files), Ok(()), "{count}");
            files.push(link.clone());
            let error = sync_files(&files).unwrap_err();
            assert!(error.message.contains(link.to_str().unwrap()), "{count}: {error}");
        }
    }
}
