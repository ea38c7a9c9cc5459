//! From a commit to a snapshot, or to what is wrong with it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use hashbrown::HashMap;
use rayon::prelude::*;

use crate::diagnostic::Diagnostic;
use crate::document::Limits;
use crate::git::{EntryKind, ReadError, Repository, TreeEntry};
use crate::model::{BlobId, CommitId};
use crate::snapshot::Snapshot;
use crate::validation::{
    Checked, FileKind, FileReading, Search, SourceContent, SourceFile, check, read_file,
    read_layout,
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

/// No snapshot was built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A commit could not be read.
    #[error("the commit {commit} cannot be read")]
    Unreadable {
        /// The commit.
        commit: CommitId,
        /// Why.
        #[source]
        source: ReadError,
    },
    /// It is not wanted any more.
    #[error("the commit {0} is superseded")]
    Cancelled(CommitId),
}

/// Files that have been read, by content and path; a commit reads only what it changes, and
/// snapshots share what they have in common.
#[derive(Debug, Default)]
pub(super) struct Cache {
    readings: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct Shelf {
    readings: HashMap<Key, Weak<FileReading>>,
    /// At this size, what nobody holds any more is looked for.
    clean_at: usize,
}

type Key = (BlobId, Arc<str>, FileKind);

/// The readings that keep the cache warm: as long as they are held, a build may use them.
pub(super) type Readings = Vec<Arc<FileReading>>;

impl Cache {
    /// Returns what is known of each file.
    fn get(&self, keys: &[Option<Key>]) -> Vec<Option<Arc<FileReading>>> {
        let shelf = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |key: &Option<Key>| shelf.readings.get(key.as_ref()?).and_then(Weak::upgrade);
        keys.iter().map(known).collect()
    }

    fn keep(&self, fresh: impl Iterator<Item = (Key, Weak<FileReading>)>) {
        let mut shelf = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.readings.extend(fresh);
        if shelf.readings.len() >= shelf.clean_at {
            shelf.readings.retain(|_, reading| reading.strong_count() > 0);
            shelf.clean_at = 2 * shelf.readings.len() + 1024;
        }
    }
}

/// Whether a build is still wanted; asked now and then.
pub(super) type Wanted<'a> = &'a (dyn Fn() -> bool + Sync);

/// Builds the snapshot of a commit's directory, and returns what keeps its files in the cache.
///
/// # Errors
///
/// Returns an error if the commit cannot be read or is not wanted any more; a commit that is not
/// valid is no error.
pub(super) fn build(
    repository: &Repository,
    commit: CommitId,
    directory: &str,
    cache: &Cache,
    wanted: Wanted<'_>,
) -> Result<(Outcome, Readings), BuildError> {
    let (checked, readings) = read(repository, commit, directory, cache, wanted)?;
    let outcome = match checked.estate {
        Some(estate) => {
            let (origins, warnings) = (checked.origins, checked.diagnostics);
            Outcome::Valid(Arc::new(Snapshot::new(commit, estate, origins, warnings)))
        }
        None => Outcome::Rejected(Arc::new(Rejected { commit, diagnostics: checked.diagnostics })),
    };
    Ok((outcome, readings))
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
) -> Result<Checked, BuildError> {
    read(repository, commit, directory, &Cache::default(), &|| true).map(|(checked, _)| checked)
}

fn read(
    repository: &Repository,
    commit: CommitId,
    directory: &str,
    cache: &Cache,
    wanted: Wanted<'_>,
) -> Result<(Checked, Readings), BuildError> {
    let fail = |source| BuildError::Unreadable { commit, source };
    let check_wanted = || if wanted() { Ok(()) } else { Err(BuildError::Cancelled(commit)) };
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
    let mut readings: Readings = Vec::new();
    let mut fresh = Vec::new();
    let files: Vec<(&TreeEntry, Arc<str>, FileKind)> = entries
        .iter()
        .filter_map(|entry| {
            let path: Arc<str> = entry.path.as_str().into();
            let file = SourceFile { path: Arc::clone(&path), content: content_kind(entry) };
            Some((entry, path, layout.kind_of(&file)?))
        })
        .collect();
    let keys: Vec<Option<Key>> = files
        .iter()
        .map(|(entry, path, kind)| match entry.kind {
            EntryKind::File(blob) => Some((blob, Arc::clone(path), *kind)),
            EntryKind::Link | EntryKind::Submodule => None,
        })
        .collect();
    for (((entry, _, kind), key), known) in files.iter().zip(&keys).zip(cache.get(&keys)) {
        match known {
            Some(reading) => readings.push(reading),
            None => {
                check_wanted()?;
                let blob = key.as_ref().map(|(blob, ..)| *blob);
                fresh.push((blob, *kind, source_file(repository, entry).map_err(fail)?));
            }
        }
    }
    let read: Vec<(Option<BlobId>, FileKind, Arc<FileReading>)> = fresh
        .into_par_iter()
        .map(|(blob, kind, file)| {
            check_wanted()?;
            Ok((blob, kind, Arc::new(read_file(&file, kind))))
        })
        .collect::<Result<_, BuildError>>()?;
    cache.keep(read.iter().filter_map(|(blob, kind, reading)| {
        Some((((*blob)?, Arc::clone(&reading.path), *kind), Arc::downgrade(reading)))
    }));
    readings.extend(read.into_iter().map(|(_, _, reading)| reading));
    readings.extend(settings.map(Arc::new));
    check_wanted()?;
    Ok((check(&layout, &readings, Search::Decisive), readings))
}

/// Returns the kind of content without reading it.
fn content_kind(entry: &TreeEntry) -> SourceContent {
    match entry.kind {
        EntryKind::File(_) => SourceContent::TooLarge(0),
        EntryKind::Link => SourceContent::Link,
        EntryKind::Submodule => SourceContent::Submodule,
    }
}

pub(super) fn source_file(
    repository: &Repository,
    entry: &TreeEntry,
) -> Result<SourceFile, ReadError> {
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
    let fail = |source| BuildError::Unreadable { commit, source };
    let entries = repository.files(commit, directory).map_err(fail)?;
    entries
        .iter()
        .filter(|entry| wanted(&entry.path))
        .map(|entry| source_file(repository, entry).map_err(fail))
        .collect()
}
