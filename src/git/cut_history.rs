//! Repositories for a while that have the objects of another one and of its history no more than is needed: libgit2 reads
//! commits far behind what it pushes or fetches, and fails where one is malformed or missing.
#![expect(clippy::disallowed_methods, reason = "a repository is a directory on disk")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use git2::{Oid, RepositoryInitOptions};
use tempfile::TempDir;

use super::alternates::write_alternates;
use super::commit_links::SHALLOW;
use super::failure::{FetchFailure, failure_of};
use super::grafts::GRAFTS;
use super::object_guard::guard;
use super::object_id::oid;
use super::repository::Repository;
use crate::model::CommitId;

/// How the names of their directories begin. The mirror removes those that a process which was killed left in it.
pub(super) const PREFIX: &str = "clade-";

/// A temporary repository that has the objects of another one.
pub(super) struct CutHistory {
    pub(super) repository: git2::Repository,
    _directory: TempDir,
}

impl CutHistory {
    /// Makes a repository in which a commit has those before it up to the one that the branch is at, else its parents; and
    /// they have none, as no commit has that a ref names: the remote has what comes before them.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository cannot be made, or the commit cannot be read.
    pub(super) fn behind(
        of: &Repository,
        commit: CommitId,
        expected: Option<CommitId>,
    ) -> io::Result<Self> {
        let inner = of.inner();
        let named = inner.references().map_err(|it| failed(&it))?;
        let named = named.filter_map(|it| Some(it.ok()?.peel_to_commit().ok()?.id()));
        let mut ends: Vec<Oid> = named.filter(|it| *it != oid(commit)).collect();
        match expected {
            Some(expected) => ends.push(oid(expected)),
            None => {
                let commit = inner.find_commit(oid(commit)).map_err(|it| failed(&it))?;
                ends.extend(commit.parent_ids());
            }
        }
        ends.sort_unstable();
        ends.dedup();
        Self::make(&[&std::env::temp_dir(), inner.path()], inner, SHALLOW, &ends)
    }

    /// Makes a repository in which a commit has no parents.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository cannot be made.
    pub(super) fn at(of: &git2::Repository, commit: Oid) -> io::Result<Self> {
        Self::make(&[&std::env::temp_dir(), of.path()], of, SHALLOW, &[commit])
    }

    /// Makes a repository to fetch into, on the disk of another one, whose only ref names one of its commits, if any:
    /// that has no parents here, and the remote is asked for what comes after it.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository cannot be made.
    pub(super) fn to_fetch_after(of: &git2::Repository, commit: Option<Oid>) -> io::Result<Self> {
        let ends: Vec<Oid> = commit.into_iter().collect();
        let cut = Self::make(&[of.path()], of, GRAFTS, &ends)?;
        for commit in ends {
            let named = cut.repository.reference("refs/heads/here", commit, true, "fetch");
            named.map_err(|it| failed(&it))?;
        }
        Ok(cut)
    }

    /// Returns its directory of objects.
    pub(super) fn objects(&self) -> PathBuf {
        self.repository.path().join("objects")
    }

    /// Makes a repository in the first of some directories that takes it: that of the system may be missing or full.
    fn make(
        directories: &[&Path],
        of: &git2::Repository,
        file: &str,
        ends: &[Oid],
    ) -> io::Result<Self> {
        let mut problem = io::Error::other("there is no directory for it");
        for directory in directories {
            let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(directory);
            match made.and_then(|it| Self::fill(it, of, file, ends)) {
                Ok(cut) => return Ok(cut),
                Err(error) => {
                    let directory = directory.display();
                    tracing::warn!(%directory, %error, "a temporary repository cannot be made here");
                    problem = error;
                }
            }
        }
        Err(problem)
    }

    fn fill(
        directory: TempDir,
        of: &git2::Repository,
        file: &str,
        ends: &[Oid],
    ) -> io::Result<Self> {
        let mut options = RepositoryInitOptions::new();
        options.bare(true).external_template(false);
        let path = directory.path();
        git2::Repository::init_opts(path, &options).map_err(|it| failed(&it))?;
        write_alternates(path, &of.commondir().join("objects"))?;
        fs::create_dir_all(path.join("info"))?;
        let ends: Vec<String> = ends.iter().map(|it| format!("{it}\n")).collect();
        fs::write(path.join(file), ends.concat())?;
        // Opened as a bare one, it would not read where its history ends.
        let repository = git2::Repository::open(path).and_then(guard);
        let repository = repository.map_err(|it| failed(&it))?;
        Ok(Self { repository, _directory: directory })
    }
}

fn failed(error: &git2::Error) -> io::Error {
    let kind = match failure_of(error) {
        FetchFailure::DiskFull => io::ErrorKind::StorageFull,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error.message().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a repository with a commit on top of another one, and both.
    fn two_commits(directory: &Path) -> (git2::Repository, [Oid; 2]) {
        let of = git2::Repository::init_bare(directory).unwrap();
        let who = git2::Signature::new("Ada", "ada@example.com", &git2::Time::new(0, 0)).unwrap();
        let commits = {
            let tree = of.treebuilder(None).unwrap().write().unwrap();
            let tree = of.find_tree(tree).unwrap();
            let first = of.commit(None, &who, &who, "first", &tree, &[]).unwrap();
            let parent = of.find_commit(first).unwrap();
            let second = of.commit(None, &who, &who, "second", &tree, &[&parent]).unwrap();
            [first, second]
        };
        (of, commits)
    }

    #[test]
    fn a_repository_is_made_in_the_next_directory_where_the_first_one_takes_none() {
        let directory = tempfile::tempdir().unwrap();
        let (of, [first, second]) = two_commits(directory.path());
        let absent = directory.path().join("absent");
        let cut = CutHistory::make(&[&absent, of.path()], &of, SHALLOW, &[second]).unwrap();
        let place = cut.repository.path().parent().unwrap().canonicalize().unwrap();
        assert_eq!(place, directory.path().canonicalize().unwrap());
        assert_eq!(cut.repository.find_commit(second).unwrap().parent_count(), 0);
        assert!(cut.repository.find_commit(first).is_ok(), "it has all objects");
        drop(cut);
        let entries = fs::read_dir(directory.path()).unwrap();
        let left = entries
            .filter(|it| it.as_ref().unwrap().file_name().to_string_lossy().starts_with(PREFIX));
        assert_eq!(left.count(), 0);
        assert!(CutHistory::make(&[&absent], &of, SHALLOW, &[second]).is_err());
    }

    #[test]
    fn what_is_fetched_into_hides_from_the_remote_where_its_history_ends() {
        let directory = tempfile::tempdir().unwrap();
        let (of, [_, second]) = two_commits(directory.path());
        let cut = CutHistory::to_fetch_after(&of, Some(second)).unwrap();
        assert_eq!(cut.repository.find_commit(second).unwrap().parent_count(), 0);
        assert!(!cut.repository.is_shallow());
        assert_eq!(cut.repository.references().unwrap().count(), 1);
        let empty = CutHistory::to_fetch_after(&of, None).unwrap();
        assert_eq!(empty.repository.references().unwrap().count(), 0);
    }
}
