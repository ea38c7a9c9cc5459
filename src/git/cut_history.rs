//! A repository to push from whose history is cut: libgit2 reads commits far behind what it pushes, and fails where one is
//! malformed.
#![expect(clippy::disallowed_methods, reason = "a repository is a directory on disk")]

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;

use git2::RepositoryInitOptions;
use tempfile::TempDir;

use super::object_guard::guard;
use super::object_id::oid;
use super::repository::Repository;
use crate::model::CommitId;

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
        let fail = |error: git2::Error| io::Error::other(error.message().to_owned());
        let directory = tempfile::Builder::new().prefix("clade-").tempdir()?;
        let mut options = RepositoryInitOptions::new();
        options.bare(true).external_template(false);
        git2::Repository::init_opts(directory.path(), &options).map_err(fail)?;
        let inner = of.inner();
        let objects = std::path::absolute(inner.commondir().join("objects"))?;
        let mut alternates = objects.into_os_string().into_vec();
        alternates.push(b'\n');
        fs::write(directory.path().join("objects/info/alternates"), alternates)?;
        let named = inner.references().map_err(fail)?;
        let named = named.filter_map(|it| Some(it.ok()?.peel_to_commit().ok()?.id()));
        let mut ends: Vec<git2::Oid> = named.filter(|it| *it != oid(commit)).collect();
        match expected {
            Some(expected) => ends.push(oid(expected)),
            None => ends.extend(inner.find_commit(oid(commit)).map_err(fail)?.parent_ids()),
        }
        ends.sort_unstable();
        ends.dedup();
        let ends: Vec<String> = ends.iter().map(|it| format!("{it}\n")).collect();
        fs::write(directory.path().join("shallow"), ends.concat())?;
        // Opened as a bare one, it would not read where its history ends.
        let repository = git2::Repository::open(directory.path()).and_then(guard).map_err(fail)?;
        Ok(Self { repository, _directory: directory })
    }
}
