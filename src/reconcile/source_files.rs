//! The files of a commit as they are written, for the command line.

use std::collections::HashSet;
use std::sync::Arc;

use super::commit_tree::{Changes, CommitTree};
use super::file_costs::{Uncounted, charge_files};
use super::open_repositories::OpenRepositories;
use super::outcome::BuildError;
use super::tree_files::{TreeFile, is_settings, source_file};
use crate::diagnostic::Diagnostic;
use crate::git::{EntryKind, FilesError, Repository, TreeEntry};
use crate::model::{CommitId, Meter};
use crate::validation::{
    Layout, OwnSchemas, SourceFile, misplaced_entry, no_groups, read_layout, too_large,
};

/// Returns the files of a commit's directory that the groups are made of, with their content.
///
/// # Errors
///
/// Returns an error if the commit cannot be read, or costs more than its budget.
pub fn source_files(
    repository: &Repository,
    commit: CommitId,
    directory: &str,
    meter: &Meter,
) -> Result<Vec<SourceFile>, SourceError> {
    let fail = |source| SourceError::Unbuilt(BuildError::Unreadable { commit, source });
    let entries = match repository.files(commit, directory, meter) {
        Ok(entries) => entries,
        Err(FilesError::Unreadable(source)) => return Err(fail(source)),
        Err(FilesError::TooLarge(exceeded)) => return Err(too_large(exceeded).into()),
        Err(error @ FilesError::Misplaced(_)) => {
            return Err(misplaced_entry(error.to_string()).into());
        }
        Err(error @ FilesError::NoDirectory(_)) => {
            return Err(no_groups(directory.into(), error.to_string()).into());
        }
    };
    let read = |entry: &TreeEntry| source_file(repository, entry).map_err(fail);
    let mut sources: Vec<SourceFile> =
        entries.iter().filter(|it| is_settings(&it.path)).map(read).collect::<Result<_, _>>()?;
    let (layout, _) = read_layout(&sources);
    let files: Vec<TreeFile<'_>> =
        entries.iter().filter_map(|entry| TreeFile::of(entry, &layout)).collect();
    let mut known = vec![None; files.len()];
    let repositories = OpenRepositories::of(repository);
    charge_files(repository, &repositories, &files, &mut known, meter).map_err(
        |stop| match stop {
            Uncounted::Unreadable(source) => fail(source),
            Uncounted::TooLarge(exceeded) => too_large(exceeded).into(),
        },
    )?;
    for file in &files {
        sources.push(read(file.entry)?);
    }
    let no_changes = Changes::new();
    let tree = CommitTree::new(repository, &entries, &[], &no_changes);
    let schemas = OwnSchemas::sources(&layout.schemas, &|path| tree.read(path));
    tree.finish().map_err(fail)?;
    // One may be a file of groups as well. Of those, several can be shown alike, since names need not be UTF-8.
    let known: HashSet<Arc<str>> = sources.iter().map(|it| Arc::clone(&it.path)).collect();
    let schemas = schemas.into_iter().filter(|(path, _)| !known.contains(path));
    sources.extend(schemas.map(|(path, content)| SourceFile { path, content }));
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

/// Returns the files of a commit's directory that are not read, although their path suggests that
/// they should be.
///
/// # Errors
///
/// Returns an error if the commit cannot be read, or costs more than its budget.
pub fn meant_files(
    repository: &Repository,
    commit: CommitId,
    directory: &str,
    layout: &Layout,
    meter: &Meter,
) -> Result<Vec<SourceFile>, BuildError> {
    let fail = |source| BuildError::Unreadable { commit, source };
    let entries = match repository.files(commit, directory, meter) {
        Ok(entries) => entries,
        Err(FilesError::Unreadable(source)) => return Err(fail(source)),
        // Reading the commit reports these.
        Err(FilesError::TooLarge(_) | FilesError::NoDirectory(_) | FilesError::Misplaced(_)) => {
            return Ok(Vec::new());
        }
    };
    // What is not a file is not followed, whatever its name is.
    let files = entries.iter().filter(|it| matches!(it.kind, EntryKind::File(_)));
    let meant = files.filter(|it| layout.may_be_meant(&it.path));
    meant.map(|it| source_file(repository, it).map_err(fail)).collect()
}

/// The files of a commit cannot be returned.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SourceError {
    /// The commit could not be read.
    #[error(transparent)]
    Unbuilt(#[from] BuildError),
    /// The commit is not valid, whatever its files say.
    #[error("{}", .0.message)]
    Rejected(Box<Diagnostic>),
}

impl From<Diagnostic> for SourceError {
    fn from(found: Diagnostic) -> Self {
        Self::Rejected(Box::new(found))
    }
}
