//! The directory that the groups of an export are written into.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
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
        check_directories(repository, &layout.groups)?;
        if has_yaml(&path).with_context(|| format!("cannot read `{}`", path.display()))? {
            bail!(
                "`{}` has YAML files or links already: remove them, or name another directory for the repository",
                path.display()
            );
        }
        Ok(Self { path, layout })
    }

    /// Writes each group into a file, and then does what else has to be done; returns how many groups there are. Where one
    /// fails, no group is left.
    pub(super) fn write(
        &self,
        hierarchy: &Hierarchy,
        then: impl FnOnce() -> Result<()>,
    ) -> Result<usize> {
        let files = layout_of(hierarchy);
        if let Some((path, _)) = files.iter().find(|(path, _)| !self.is_for_groups(path)) {
            let groups = &self.layout.groups;
            bail!(
                "`clade.yaml` says that `{groups}/{}` is not a file of groups: choose a directory for `groups` without others in it",
                path.display()
            );
        }
        let mut made = MadePaths::default();
        self.write_files(hierarchy, &files, &mut made).and_then(|()| then()).inspect_err(|_| {
            // Half of the groups would be another estate, and in the way of the next attempt.
            made.remove();
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

    /// Writes each group into a file that is not there yet; notes all files and directories that it makes.
    fn write_files(
        &self,
        hierarchy: &Hierarchy,
        files: &[(PathBuf, GroupIndex)],
        made: &mut MadePaths,
    ) -> Result<()> {
        let parents = ParentNames::of(hierarchy, hierarchy.groups());
        for (path, index) in files {
            let path = self.path.join(path);
            if let Some(parent) = path.parent() {
                made.make_directory(parent)
                    .with_context(|| format!("cannot make the directory `{}`", parent.display()))?;
            }
            let text = new_document(hierarchy.group(*index), &parents);
            let what = || format!("cannot write `{}`", path.display());
            let mut file = File::create_new(&path).with_context(what)?;
            made.files.push(path.clone());
            file.write_all(text.as_bytes()).with_context(what)?;
        }
        Ok(())
    }
}

/// What an import has made so far.
#[derive(Default)]
struct MadePaths {
    files: Vec<PathBuf>,
    /// Those above come first.
    directories: Vec<PathBuf>,
}

impl MadePaths {
    /// Makes a directory and those above it that are not there.
    fn make_directory(&mut self, directory: &Path) -> io::Result<()> {
        if directory.as_os_str().is_empty() || directory.is_dir() {
            return Ok(());
        }
        if let Some(above) = directory.parent() {
            self.make_directory(above)?;
        }
        std::fs::create_dir(directory)?;
        self.directories.push(directory.to_owned());
        Ok(())
    }

    /// Removes it; a directory that has something else in it by now stays.
    fn remove(&self) {
        for file in &self.files {
            std::fs::remove_file(file).ok();
        }
        for directory in self.directories.iter().rev() {
            std::fs::remove_dir(directory).ok();
        }
    }
}

/// Checks that what is written below a directory of a repository is read there and can be committed.
fn check_directories(repository: &Path, directory: &str) -> Result<()> {
    let mut path = repository.to_owned();
    for name in directory.split('/') {
        path.push(name);
        if name.eq_ignore_ascii_case(".git") {
            bail!(
                "`{}` is git's own, and no commit has what is in it: correct `groups` in `clade.yaml`",
                path.display()
            );
        }
        match std::fs::symlink_metadata(&path) {
            Ok(there) if there.is_dir() => {}
            Ok(_) => bail!(
                "`{}` is not a directory, and Clade follows no links: remove it, or correct `groups` in `clade.yaml`",
                path.display()
            ),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read `{}`", path.display()));
            }
        }
    }
    Ok(())
}

/// Returns whether a directory, if it is there, has YAML files or links in it or below.
fn has_yaml(directory: &Path) -> io::Result<bool> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let is_yaml = path.extension().is_some_and(|it| it == "yaml" || it == "yml");
        let kind = entry.file_type()?;
        if is_yaml || kind.is_symlink() || (kind.is_dir() && has_yaml(&path)?) {
            return Ok(true);
        }
    }
    Ok(false)
}
