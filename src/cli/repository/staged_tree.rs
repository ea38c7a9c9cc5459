//! What git knows of the files of a working tree.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::discover::discover;
use crate::git::{Repository, StagedEntry};

/// The index of the repository that a directory lies in, with the paths from the directory.
pub(super) struct StagedTree {
    repository: Repository,
    /// The directory from the top of the working tree.
    inside: PathBuf,
    /// Whether git ignores the directory as a whole, or has no file of it: then no commit has it, and its files are those of a
    /// repository to be.
    is_ignored: bool,
    submodules: HashSet<PathBuf>,
    files: HashSet<PathBuf>,
    /// The files that a sparse checkout leaves out, in their order.
    sparse: Vec<PathBuf>,
}

impl StagedTree {
    /// Reads what is staged below a directory; none where the directory is in no repository.
    pub(super) fn of(directory: &Path) -> Option<Self> {
        let (repository, inside) = discover(directory).ok()?;
        let entries = repository.staged().ok()?;
        let is_ignored = !inside.as_os_str().is_empty() && repository.ignores(&inside);
        let (mut submodules, mut files) = (HashSet::new(), HashSet::new());
        let mut sparse = Vec::new();
        for StagedEntry { path, is_submodule, is_sparse } in entries {
            let path = Path::new(OsStr::from_bytes(&path));
            let Ok(path) = path.strip_prefix(&inside).map(Path::to_owned) else { continue };
            if is_submodule {
                submodules.insert(path);
                continue;
            }
            if is_sparse {
                sparse.push(path.clone());
            }
            files.insert(path);
        }
        let is_ignored = is_ignored || files.is_empty();
        Some(Self { repository, inside, is_ignored, submodules, files, sparse })
    }

    /// Returns whether a directory lies in a sparse checkout whose index cannot be read: one that has whole directories as
    /// one entry.
    pub(super) fn is_unreadable(directory: &Path) -> bool {
        discover(directory).is_ok_and(|(it, _)| it.is_sparse() && it.staged().is_err())
    }

    pub(super) fn has_submodule(&self, path: &Path) -> bool {
        self.submodules.contains(path)
    }

    /// Returns whether a commit of everything lacks a file: git ignores it, and does not have it yet.
    pub(super) fn ignores(&self, file: &Path) -> bool {
        !self.is_ignored
            && !self.files.contains(file)
            && self.repository.ignores(&self.inside.join(file))
    }

    /// Returns the files that a sparse checkout leaves out.
    pub(super) fn sparse(&self) -> impl Iterator<Item = &PathBuf> {
        self.sparse.iter()
    }
}
