//! From a commit to a snapshot, or to what is wrong with it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use hashbrown::HashMap;
use rayon::prelude::*;

use super::controller::Controller;
use crate::diagnostic::Diagnostic;
use crate::document::Limits;
use crate::git::{EntryKind, ReadError, Repository, TreeEntry};
use crate::model::{BlobId, CommitId};
use crate::snapshot::Snapshot;
use crate::validation::{
    Checked, FileKind, FileReading, Layout, Search, SourceContent, SourceFile, check, read_file,
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

impl Cache {
    /// Returns what is known of each file.
    fn get(&self, files: &[File<'_>]) -> Vec<Option<Arc<FileReading>>> {
        let shelf = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        if shelf.readings.is_empty() {
            return vec![None; files.len()];
        }
        let known = |file: &File<'_>| shelf.readings.get(&file.key()?).and_then(Weak::upgrade);
        files.iter().map(known).collect()
    }

    fn keep<'f>(&self, fresh: impl Iterator<Item = (&'f File<'f>, &'f Arc<FileReading>)>) {
        let mut shelf = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.readings.extend(
            fresh.filter_map(|(file, reading)| Some((file.key()?, Arc::downgrade(reading)))),
        );
        if shelf.readings.len() >= shelf.clean_at {
            shelf.readings.retain(|_, reading| reading.strong_count() > 0);
            shelf.clean_at = 2 * shelf.readings.len() + 1024;
        }
    }

    fn keep_one(&self, file: &File<'_>, reading: Arc<FileReading>) -> Arc<FileReading> {
        self.keep(std::iter::once((file, &reading)));
        reading
    }
}

/// Whether a build is still wanted; asked now and then.
pub(super) type Wanted<'a> = &'a (dyn Fn() -> bool + Sync);

/// What came of a commit, with what the next one can use of it.
#[derive(Clone, Debug)]
pub(super) struct Built {
    pub(super) outcome: Outcome,
    /// As long as it is held, the readings of its files stay in the cache.
    pub(super) checked: Arc<Checked>,
}

/// Builds the snapshot of a commit's directory, from that of another commit where they have much in
/// common.
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
    base: Option<&Built>,
    wanted: Wanted<'_>,
) -> Result<Built, BuildError> {
    // The other commit may be gone from the repository: that is no fault of this one.
    let amended = base.map(|base| amend(repository, commit, directory, cache, base));
    if let Some(Ok(Some(built))) = amended {
        return Ok(built);
    }
    let mut checked = read(repository, commit, directory, cache, wanted)?;
    let diagnostics = std::mem::take(&mut checked.diagnostics);
    let outcome = match &checked.estate {
        Some(estate) => {
            let (estate, origins) = (estate.clone(), Arc::clone(&checked.origins));
            Outcome::Valid(Arc::new(Snapshot::new(commit, estate, origins, diagnostics)))
        }
        None => Outcome::Rejected(Arc::new(Rejected { commit, diagnostics })),
    };
    Ok(Built { outcome, checked: Arc::new(checked) })
}

/// How many files may differ for a commit to be built from another.
const DIFFERENCES: usize = 64;

/// Builds a commit that differs from a valid one in what a few files say; `None` if it must be built
/// from all files.
fn amend(
    repository: &Repository,
    commit: CommitId,
    directory: &str,
    cache: &Cache,
    base: &Built,
) -> Result<Option<Built>, BuildError> {
    let fail = |source| BuildError::Unreadable { commit, source };
    let Outcome::Valid(before) = &base.outcome else { return Ok(None) };
    let changes = repository.amended_files(before.commit, commit, directory, DIFFERENCES);
    let Some(changes) = changes.map_err(fail)? else { return Ok(None) };
    let layout = base.checked.layout();
    let mut files = Vec::new();
    for entry in &changes {
        if is_settings(entry) {
            return Ok(None);
        }
        files.extend(File::of(entry, layout));
    }
    let readings: Vec<Arc<FileReading>> = files
        .iter()
        .zip(cache.get(&files))
        .map(|(file, known)| match known {
            Some(reading) => Ok(reading),
            None => {
                let source = source_file(repository, file.entry).map_err(fail)?;
                Ok(cache.keep_one(file, Arc::new(read_file(&source, file.kind))))
            }
        })
        .collect::<Result<_, BuildError>>()?;
    let Some(mut checked) = base.checked.again(&readings) else { return Ok(None) };
    let Some(estate) = checked.estate.clone() else { return Ok(None) };
    let (origins, warnings) =
        (Arc::clone(&checked.origins), std::mem::take(&mut checked.diagnostics));
    let snapshot = before.amended(commit, estate, origins, warnings);
    Ok(Some(Built { outcome: Outcome::Valid(Arc::new(snapshot)), checked: Arc::new(checked) }))
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
    read(repository, commit, directory, &Cache::default(), &|| true)
}

fn read(
    repository: &Repository,
    commit: CommitId,
    directory: &str,
    cache: &Cache,
    wanted: Wanted<'_>,
) -> Result<Checked, BuildError> {
    let fail = |source| BuildError::Unreadable { commit, source };
    let check_wanted = || if wanted() { Ok(()) } else { Err(BuildError::Cancelled(commit)) };
    let entries = repository.files(commit, directory).map_err(fail)?;
    let settings: Vec<SourceFile> = entries
        .iter()
        .filter(|entry| is_settings(entry))
        .map(|entry| source_file(repository, entry))
        .collect::<Result<_, _>>()
        .map_err(fail)?;
    let (layout, settings) = read_layout(&settings);
    let files: Vec<File<'_>> =
        entries.iter().filter_map(|entry| File::of(entry, &layout)).collect();
    let known = cache.get(&files);
    // Each thread opens the repository for itself, which pays from a number of files on.
    let opener = repository.opener();
    let stretches: Vec<Vec<Arc<FileReading>>> = files
        .par_chunks(STRETCH)
        .zip(known.par_chunks(STRETCH))
        .map(|(files, known)| {
            check_wanted()?;
            let mut opened = None;
            let read = |(file, known): (&File<'_>, &Option<Arc<FileReading>>)| {
                if let Some(reading) = known {
                    return Ok(Arc::clone(reading));
                }
                let repository = match &opened {
                    Some(repository) => repository,
                    None => opened.insert(opener.open().map_err(fail)?),
                };
                let source = source_file(repository, file.entry).map_err(fail)?;
                Ok(Arc::new(read_file(&source, file.kind)))
            };
            files.iter().zip(known).map(read).collect()
        })
        .collect::<Result<_, BuildError>>()?;
    let mut readings: Vec<Arc<FileReading>> = stretches.into_iter().flatten().collect();
    cache.keep(
        files
            .iter()
            .zip(&readings)
            .zip(&known)
            .filter(|(_, known)| known.is_none())
            .map(|(it, _)| it),
    );
    readings.extend(settings.map(Arc::new));
    check_wanted()?;
    Ok(check(&layout, &readings, Search::Decisive))
}

/// How many files one thread reads at once.
const STRETCH: usize = 256;

/// A file that has a part in the repository.
pub(super) struct File<'e> {
    entry: &'e TreeEntry,
    path: Arc<str>,
    pub(super) kind: FileKind,
}

impl<'e> File<'e> {
    /// `None` if it has none.
    pub(super) fn of(entry: &'e TreeEntry, layout: &Layout) -> Option<Self> {
        let path: Arc<str> = entry.path.as_str().into();
        let file = SourceFile { path: Arc::clone(&path), content: content_kind(entry) };
        Some(Self { entry, path, kind: layout.kind_of(&file)? })
    }

    fn key(&self) -> Option<Key> {
        match self.entry.kind {
            EntryKind::File(blob) => Some((blob, Arc::clone(&self.path), self.kind)),
            EntryKind::Link | EntryKind::Submodule => None,
        }
    }
}

fn is_settings(entry: &TreeEntry) -> bool {
    matches!(entry.path.as_str(), "clade.yaml" | "clade.yml")
}

impl Controller {
    /// Returns the layout and policy of a commit.
    pub(super) fn layout_at(&self, repository: &Repository, commit: CommitId) -> Layout {
        let settings = ["clade.yaml", "clade.yml"].into_iter().find_map(|path| {
            let text = repository.text(commit, &self.path_of(path))?;
            let content = SourceContent::Bytes(text.into_bytes().into());
            Some(SourceFile { path: path.into(), content })
        });
        read_layout(settings.as_slice()).0
    }
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
