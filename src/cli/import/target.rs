//! The directory that the groups of an export are written into.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::changeset::{ParentNames, layout_of, new_document};
use crate::cli::repository::layout_of_directory;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::validation::{FileKind, Layout, SourceContent, SourceFile};

/// The directory of the groups in a repository that has none yet.
pub(super) struct ImportTarget {
    pub(super) path: PathBuf,
    layout: Layout,
}

impl ImportTarget {
    /// Returns the directory of the groups that the `clade.yaml` of a repository names.
    pub(super) fn of(repository: &Path) -> Result<Self> {
        let layout = layout_of_directory(repository).context("where the groups go is not known")?;
        let path = repository.join(&layout.groups);
        if path.exists() {
            bail!(
                "`{}` exists already: remove it, or name another directory for the repository",
                path.display()
            );
        }
        Ok(Self { path, layout })
    }

    /// Writes each group into a file; returns how many they are.
    pub(super) fn write(&self, hierarchy: &Hierarchy) -> Result<usize> {
        let files = layout_of(hierarchy);
        if let Some((path, _)) = files.iter().find(|(path, _)| !self.is_for_groups(path)) {
            let groups = &self.layout.groups;
            bail!(
                "`clade.yaml` says that `{groups}/{}` is not a file of groups: choose a directory for `groups` without others in it",
                path.display()
            );
        }
        self.write_files(hierarchy, &files).inspect_err(|_| {
            // Half of the groups would be another estate, and in the way of the next attempt.
            std::fs::remove_dir_all(&self.path).ok();
        })?;
        Ok(files.len())
    }

    /// Returns whether the layout takes a file below the directory for one of groups.
    fn is_for_groups(&self, path: &Path) -> bool {
        let path = format!("{}/{}", self.layout.groups, path.display());
        let content = SourceContent::Bytes([].into());
        let file = SourceFile { path: path.into(), content };
        self.layout.kind_of(&file) == Some(FileKind::Groups)
    }

    fn write_files(&self, hierarchy: &Hierarchy, files: &[(PathBuf, GroupIndex)]) -> Result<()> {
        let parents = ParentNames::of(hierarchy, hierarchy.groups());
        for (path, index) in files {
            let path = self.path.join(path);
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)
                    .with_context(|| format!("cannot make the directory `{}`", parent.display()))?;
            }
            let text = new_document(hierarchy.group(*index), &parents);
            std::fs::write(&path, text)
                .with_context(|| format!("cannot write `{}`", path.display()))?;
        }
        Ok(())
    }
}
