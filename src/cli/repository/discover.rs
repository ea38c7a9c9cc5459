//! The git repository that a directory lies in.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::git::Repository;

/// Returns the git repository that a directory lies in, and its path from the top as it is written.
pub(super) fn discover(directory: &Path) -> Result<(Repository, PathBuf)> {
    let what = || format!("cannot read the directory `{}`", directory.display());
    let absolute = directory.canonicalize().with_context(what)?;
    let repository = Repository::discover(&absolute)?;
    let inside = match repository.worktree() {
        Some(worktree) => absolute
            .strip_prefix(worktree.canonicalize().with_context(what)?)
            .map(Path::to_owned)
            .unwrap_or_default(),
        None => PathBuf::new(),
    };
    Ok((repository, inside))
}
