//! Files of a commit, by their paths from the root of the groups.

use super::Source;
use crate::changeset::PathKind;
use crate::diagnostic::Severity;
use crate::git::{EntryKind, FilesError, ReadError, Repository};
use crate::model::{Budget, CommitId};
use crate::reconcile::tree_files::SETTINGS_FILES;
use crate::validation::{FileReading, Layout, SourceContent, SourceFile, read_layout};

impl Source {
    /// Returns the path in the repository of a file, given from the root of the groups.
    pub(in crate::reconcile) fn path_of(&self, path: &str) -> String {
        path_below(&self.path, path)
    }

    /// Returns whether a commit has the directory of the groups.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit cannot be read within the budget.
    pub(in crate::reconcile) fn has_path(
        &self,
        repository: &Repository,
        commit: CommitId,
        budget: &Budget,
    ) -> Result<bool, FilesError> {
        repository.has_directory(commit, &self.path, budget)
    }

    /// Returns the text of a file in a commit, by its path from the root of the groups; none if the
    /// commit lacks it.
    ///
    /// # Errors
    ///
    /// Returns an error if an object on the way cannot be read.
    pub(in crate::reconcile) fn text(
        &self,
        repository: &Repository,
        commit: CommitId,
        path: &str,
    ) -> Result<Option<String>, ReadError> {
        repository.text(commit, &self.path_of(path))
    }

    /// Returns the names in a directory of a commit, from the root of the groups, with what stands there.
    ///
    /// # Errors
    ///
    /// Returns an error if an object on the way cannot be read.
    pub(in crate::reconcile) fn names(
        &self,
        repository: &Repository,
        commit: CommitId,
        directory: &str,
    ) -> Result<Vec<(String, PathKind)>, ReadError> {
        let names = repository.names(commit, &self.path_of(directory))?;
        let kind = |it: Option<EntryKind>| match it {
            None => PathKind::Directory,
            Some(_) => PathKind::File,
        };
        Ok(names.into_iter().map(|(name, it)| (name, kind(it))).collect())
    }

    /// Returns the layout and policy of a commit; where their file has errors, what of it can be read.
    ///
    /// # Errors
    ///
    /// Returns an error if the file of them cannot be read.
    pub(in crate::reconcile) fn layout(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<Layout, ReadError> {
        Ok(self.settings(repository, commit)?.0)
    }

    /// Returns the layout and policy of a commit, if their file has no errors.
    ///
    /// # Errors
    ///
    /// As [`Self::layout`].
    pub(in crate::reconcile) fn sound_layout(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<Option<Layout>, ReadError> {
        let (layout, reading) = self.settings(repository, commit)?;
        let mut findings = reading.iter().flat_map(|it| &it.diagnostics);
        Ok(findings.all(|it| it.severity != Severity::Error).then_some(layout))
    }

    fn settings(
        &self,
        repository: &Repository,
        commit: CommitId,
    ) -> Result<(Layout, Option<FileReading>), ReadError> {
        for path in SETTINGS_FILES {
            if let Some(text) = self.text(repository, commit, path)? {
                let content = SourceContent::Bytes(text.into_bytes().into());
                return Ok(read_layout(&[SourceFile { path: path.into(), content }]));
            }
        }
        Ok(read_layout(&[]))
    }
}

/// Returns the path in the repository of a file, given from a directory of the repository.
pub fn path_below(directory: &str, path: &str) -> String {
    match directory.trim_matches('/') {
        "" | "." => path.to_owned(),
        directory => format!("{directory}/{path}"),
    }
}
