//! Changes of the working directory that no daemon can have: they are not committed.

use std::path::{Path, PathBuf};

use super::repository::layout_of_directory;
use crate::git::Repository;

/// Says that files of the group repository in the working directory, or at the top of the working tree, have changes that
/// are not committed.
pub(super) fn note(repository: &Repository) -> Option<String> {
    let top = repository.worktree()?.canonicalize().ok()?;
    let here = Path::new(".").canonicalize().ok()?;
    let paths = [here.as_path(), &top].into_iter().find_map(|it| parts(it, &top))?;
    // Editors leave other files beside them.
    let is_read = |it: &&PathBuf| it.extension().is_some_and(|it| it == "yaml" || it == "yml");
    match repository.uncommitted(&paths)?.iter().filter(is_read).count() {
        0 => None,
        1 => Some("note: 1 file has changes that are not committed".to_owned()),
        many => Some(format!("note: {many} files have changes that are not committed")),
    }
}

/// Returns what a group repository is made of, from the top of the working tree, if a directory is one.
fn parts(directory: &Path, top: &Path) -> Option<Vec<PathBuf>> {
    let layout = layout_of_directory(directory).ok()?;
    let inside = directory.strip_prefix(top).ok()?;
    let parts = [layout.groups.as_str(), &layout.nodes, &layout.environments];
    let is_one = directory.join(&layout.groups).is_dir();
    let all = parts.into_iter().chain(["clade.yaml", "clade.yml"]);
    is_one.then(|| all.map(|it| inside.join(it)).collect())
}
