//! From a commit to a snapshot, or to what is wrong with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use crate::diagnostic::Diagnostic;
use crate::document::Limits;
use crate::git::{EntryKind, ReadError, Repository, TreeEntry};
use crate::model::{BlobId, CommitId};
use crate::snapshot::Snapshot;
use crate::validation::{
    Checked, FileKind, FileReading, SourceContent, SourceFile, check, read_file, read_layout,
};

/// What came of a commit.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It is valid.
    Valid(Arc<Snapshot>),
    /// It is not, and never answers.
    Rejected(Arc<Rejected>),
}

/// A commit that is not valid.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// The commit.
    pub commit: CommitId,
    /// What is wrong, warnings too.
    pub diagnostics: Vec<Diagnostic>,
}

/// A commit could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the commit {commit} cannot be read")]
pub struct BuildError {
    /// The commit.
    pub commit: CommitId,
    /// Why.
    #[source]
    pub source: ReadError,
}

/// Files that have been read, by content and path; a commit reads only what it changes.
#[derive(Debug, Default)]
pub struct Cache {
    readings: Mutex<Readings>,
}

type Readings = HashMap<(BlobId, Arc<str>, FileKind), Arc<FileReading>>;

impl Cache {
    fn get(&self, blob: BlobId, path: &Arc<str>, kind: FileKind) -> Option<Arc<FileReading>> {
        let readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        readings.get(&(blob, Arc::clone(path), kind)).cloned()
    }

    /// Keeps what the newest commit uses and drops the rest.
    fn replace(&self, used: Readings) {
        *self.readings.lock().unwrap_or_else(PoisonError::into_inner) = used;
    }
}

/// Builds the snapshot of a commit's directory.
///
/// # Errors
///
/// Returns an error if the commit cannot be read; a commit that is not valid is no error.
pub fn build(
    repository: &Repository,
    commit: CommitId,
    directory: &str,
    cache: &Cache,
) -> Result<Outcome, BuildError> {
    let checked = load(repository, commit, directory, cache)?;
    Ok(match checked.estate {
        Some(estate) => Outcome::Valid(Arc::new(Snapshot {
            commit,
            estate,
            origins: checked.origins,
            warnings: checked.diagnostics,
        })),
        None => Outcome::Rejected(Arc::new(Rejected { commit, diagnostics: checked.diagnostics })),
    })
}

/// Reads and checks the files of a commit's directory.
///
/// # Errors
///
/// Returns an error if the commit cannot be read.
pub fn load(
    repository: &Repository,
    commit: CommitId,
    directory: &str,
    cache: &Cache,
) -> Result<Checked, BuildError> {
    let fail = |source| BuildError { commit, source };
    let entries = repository.files(commit, directory).map_err(fail)?;
    let is_settings =
        |entry: &&TreeEntry| matches!(entry.path.as_str(), "clade.yaml" | "clade.yml");
    let settings: Vec<SourceFile> = entries
        .iter()
        .filter(is_settings)
        .map(|entry| source_file(repository, entry))
        .collect::<Result<_, _>>()
        .map_err(fail)?;
    let (layout, settings) = read_layout(&settings);
    // Blobs are read by one thread, as the repository wants it, and parsed by all.
    let mut known = Vec::new();
    let mut fresh = Vec::new();
    for entry in &entries {
        let placeholder =
            SourceFile { path: entry.path.as_str().into(), content: content_kind(entry) };
        let Some(kind) = layout.kind_of(&placeholder) else { continue };
        let blob = match entry.kind {
            EntryKind::File(blob) => Some(blob),
            EntryKind::Link | EntryKind::Submodule => None,
        };
        match blob.and_then(|blob| Some((blob, cache.get(blob, &placeholder.path, kind)?))) {
            Some((blob, reading)) => known.push((Some(blob), kind, reading)),
            None => fresh.push((blob, kind, source_file(repository, entry).map_err(fail)?)),
        }
    }
    let read: Vec<_> = fresh
        .into_par_iter()
        .map(|(blob, kind, file)| (blob, kind, Arc::new(read_file(&file, kind))))
        .collect();
    known.extend(read);
    let used = known.iter().filter_map(|(blob, kind, reading)| {
        Some((((*blob)?, Arc::clone(&reading.path), *kind), Arc::clone(reading)))
    });
    cache.replace(used.collect());
    let mut readings: Vec<Arc<FileReading>> = known.into_iter().map(|(_, _, it)| it).collect();
    readings.extend(settings.map(Arc::new));
    Ok(check(&layout, &readings))
}

/// Returns the kind of content without reading it.
fn content_kind(entry: &TreeEntry) -> SourceContent {
    match entry.kind {
        EntryKind::File(_) => SourceContent::TooLarge(0),
        EntryKind::Link => SourceContent::Link,
        EntryKind::Submodule => SourceContent::Submodule,
    }
}

fn source_file(repository: &Repository, entry: &TreeEntry) -> Result<SourceFile, ReadError> {
    let content = match entry.kind {
        EntryKind::Link => SourceContent::Link,
        EntryKind::Submodule => SourceContent::Submodule,
        EntryKind::File(blob) => {
            let size = repository.blob_size(blob)?;
            if size > Limits::DEFAULT.file_bytes {
                SourceContent::TooLarge(size)
            } else {
                SourceContent::Bytes(repository.blob(blob)?.into())
            }
        }
    };
    Ok(SourceFile { path: entry.path.as_str().into(), content })
}

/// Returns the files of a commit's directory with their content, for what wants their text.
///
/// # Errors
///
/// Returns an error if the commit cannot be read.
pub fn source_files(
    repository: &Repository,
    commit: CommitId,
    directory: &str,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<SourceFile>, BuildError> {
    let fail = |source| BuildError { commit, source };
    let entries = repository.files(commit, directory).map_err(fail)?;
    entries
        .iter()
        .filter(|entry| wanted(&entry.path))
        .map(|entry| source_file(repository, entry).map_err(fail))
        .collect()
}
