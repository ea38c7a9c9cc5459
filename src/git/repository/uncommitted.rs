//! What a working tree has that is not committed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use git2::StatusOptions;

use super::Repository;

impl Repository {
    /// Returns the files at or below some paths, from the top of the working tree, that are not as the newest commit has
    /// them; none where that is not known. Files that git ignores are left out.
    pub fn uncommitted(&self, paths: &[impl AsRef<Path>]) -> Option<Vec<PathBuf>> {
        self.worktree()?;
        let mut options = StatusOptions::new();
        options.include_untracked(true).recurse_untracked_dirs(true).exclude_submodules(true);
        // It has been opened for reading only.
        options.disable_pathspec_match(true).update_index(false);
        for path in paths {
            options.pathspec(path.as_ref());
        }
        let found = self.inner.statuses(Some(&mut options)).ok()?;
        let path = |it: git2::StatusEntry<'_>| PathBuf::from(OsStr::from_bytes(it.path_bytes()));
        Some(found.iter().map(path).collect())
    }
}
