//! Reading and checking the files of a commit.

use std::sync::Arc;

use rayon::prelude::*;

use super::commit_tree::{Changes, CommitTree};
use super::file_costs::{Uncounted, charge_files};
use super::meant_directory::help_without_groups;
use super::open_repositories::OpenRepositories;
use super::outcome::BuildError;
use super::reading_cache::ReadingCache;
use super::tree_files::{TreeFile, is_settings, source_file};
use crate::diagnostic::Kind;
use crate::document::Limits;
use crate::git::{EntryKind, FilesError, ReadError, Repository, TreeEntry};
use crate::hierarchy::Hierarchy;
use crate::model::{Budget, BudgetItem, CommitId, Exceeded, Meter};
use crate::validation::{
    Checked, Commit, FileReading, Layout, Search, SourceContent, SourceFile, check,
    misplaced_entry, no_groups, read_layout, too_large,
};

/// What a reading of a commit uses.
pub(super) struct Reading<'r> {
    pub(super) repository: &'r Repository,
    pub(super) commit: CommitId,
    /// The directory of the groups.
    pub(super) directory: &'r str,
    pub(super) cache: &'r ReadingCache,
    pub(super) meter: &'r Arc<Meter>,
    /// Whether the result is still wanted; asked now and then.
    pub(super) is_wanted: &'r (dyn Fn() -> bool + Sync),
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
    check_commit(repository, commit, directory, Budget::DEFAULT)
}

/// Reads and checks the files of a commit's directory within a budget.
///
/// # Errors
///
/// Returns an error if the commit cannot be read.
pub(super) fn check_commit(
    repository: &Repository,
    commit: CommitId,
    directory: &str,
    budget: Budget,
) -> Result<Checked, BuildError> {
    let (cache, meter) = (ReadingCache::default(), Arc::new(Meter::new(budget)));
    let is_wanted = &|| true;
    let reading =
        Reading { repository, commit, directory, cache: &cache, meter: &meter, is_wanted };
    reading.check(&Changes::new())
}

/// Why a commit was not read to the end.
enum Stop {
    Unbuilt(BuildError),
    TooLarge(Exceeded),
}

impl From<Exceeded> for Stop {
    fn from(exceeded: Exceeded) -> Self {
        Self::TooLarge(exceeded)
    }
}

/// How many files one thread reads at once: few, so that the threads end at about the same time.
const CHUNK: usize = 32;

impl Reading<'_> {
    /// Reads and checks the files, as they are with some changes.
    pub(super) fn check(&self, changes: &Changes) -> Result<Checked, BuildError> {
        self.check_beside(changes, &|_| {})
    }

    /// Reads and checks the files, as they are with some changes, and does something else with the tree of their
    /// groups meanwhile.
    pub(super) fn check_beside(
        &self,
        changes: &Changes,
        beside: &(dyn Fn(&Hierarchy) + Sync),
    ) -> Result<Checked, BuildError> {
        let rejected = |found| Ok(Checked::rejected(found, &Layout::default(), Search::Decisive));
        let entries = match self.repository.files(self.commit, self.directory, self.meter) {
            Ok(entries) => entries,
            Err(FilesError::Unreadable(source)) => {
                return Err(BuildError::Unreadable { commit: self.commit, source });
            }
            Err(FilesError::TooLarge(exceeded)) => return rejected(too_large(exceeded)),
            Err(error @ FilesError::Misplaced(_)) => {
                return rejected(misplaced_entry(error.to_string()));
            }
            Err(error @ FilesError::NoDirectory(_)) => {
                return rejected(no_groups(self.directory.into(), error.to_string()));
            }
        };
        match self.check_entries(&entries, changes, beside) {
            Ok(mut checked) => {
                if checked.diagnostics.iter().any(|it| it.kind == Kind::NoGroups) {
                    checked.explain_no_groups(help_without_groups(self.directory, &entries));
                }
                Ok(checked)
            }
            Err(Stop::Unbuilt(error)) => Err(error),
            Err(Stop::TooLarge(exceeded)) => rejected(too_large(exceeded)),
        }
    }

    fn check_entries(
        &self,
        entries: &[TreeEntry],
        changes: &Changes,
        beside: &(dyn Fn(&Hierarchy) + Sync),
    ) -> Result<Checked, Stop> {
        let kept = || entries.iter().filter(|it| !changes.contains_key(&it.path));
        let (settings, changed): (Vec<SourceFile>, Vec<SourceFile>) =
            changes.iter().filter_map(changed_file).partition(|it| is_settings(&it.path));
        let settings: Vec<SourceFile> = kept()
            .filter(|entry| is_settings(&entry.path))
            .map(|entry| source_file(self.repository, entry))
            .chain(settings.into_iter().map(Ok))
            .collect::<Result<_, _>>()
            .map_err(|source| self.unreadable(source))?;
        let (layout, settings) = read_layout(&settings);
        let files: Vec<TreeFile<'_>> =
            kept().filter_map(|entry| TreeFile::of(entry, &layout)).collect();
        let added = changed.iter().filter(|file| !entries.iter().any(|it| *it.path == *file.path));
        self.meter.charge(BudgetItem::Entries, added.count() as u64)?;
        for file in &changed {
            // Whether the same content stands elsewhere is not known here, so it counts as new.
            self.meter.charge(BudgetItem::DistinctBytes, file.size())?;
            self.meter.charge(BudgetItem::DocumentBytes, file.size())?;
        }
        let mut readings = self.read_files(&files)?;
        for file in &changed {
            if let Some(kind) = layout.kind_of(file) {
                readings.push(self.cache.read(file, kind, self.meter, Arc::new)?);
            }
        }
        readings.extend(settings.map(Arc::new));
        if !(self.is_wanted)() {
            return Err(Stop::Unbuilt(BuildError::Cancelled(self.commit)));
        }
        let tree = CommitTree::new(self.repository, entries, &changed, changes);
        let read = |path: &str| tree.read(path);
        let schemas = self.cache.schemas(&layout.schemas, &tree);
        let commit =
            Commit { layout: &layout, readings: &readings, schemas: &schemas, read: &read };
        let checked = check(&commit, Search::Decisive, self.meter, beside);
        // What could not be read must not be taken for what is not there.
        tree.finish().map_err(|source| self.unreadable(source))?;
        Ok(checked)
    }

    /// Reads the files that the cache does not have, on several threads.
    fn read_files(&self, files: &[TreeFile<'_>]) -> Result<Vec<Arc<FileReading>>, Stop> {
        let mut known = self.cache.get(files);
        let repositories = OpenRepositories::of(self.repository);
        let counted = charge_files(self.repository, &repositories, files, &mut known, self.meter);
        let sizes = counted.map_err(|stop| match stop {
            Uncounted::Unreadable(source) => self.unreadable(source),
            Uncounted::TooLarge(exceeded) => Stop::TooLarge(exceeded),
        })?;
        let size_of = |entry: &TreeEntry| match entry.kind {
            EntryKind::File(blob) => sizes.get(&blob).copied(),
            EntryKind::Link | EntryKind::Submodule => None,
        };
        let Self { commit, cache, meter, is_wanted, .. } = *self;
        let fail = |source| Stop::Unbuilt(BuildError::Unreadable { commit, source });
        let chunks: Vec<Vec<Arc<FileReading>>> = files
            .par_chunks(CHUNK)
            .zip(known.par_chunks(CHUNK))
            .map(|(files, known)| {
                if !is_wanted() {
                    return Err(Stop::Unbuilt(BuildError::Cancelled(commit)));
                }
                let read = |(file, known): (&TreeFile<'_>, &Option<Arc<FileReading>>)| {
                    if let Some(reading) = known {
                        return Ok(Arc::clone(reading));
                    }
                    let source = repositories
                        .with(|repository| file.source(repository, size_of(file.entry)));
                    Ok(cache.read(&source.map_err(fail)?, file.kind, meter, Arc::new)?)
                };
                files.iter().zip(known).map(read).collect()
            })
            .collect::<Result<_, Stop>>()?;
        let readings: Vec<Arc<FileReading>> = chunks.into_iter().flatten().collect();
        // A reading that lacks findings must not be taken for all that there is to find.
        if self.meter.dropped().is_none() {
            let all = files.iter().zip(&readings).zip(&known);
            self.cache.insert(all.filter(|(_, known)| known.is_none()).map(|(it, _)| it));
        }
        Ok(readings)
    }

    fn unreadable(&self, source: ReadError) -> Stop {
        Stop::Unbuilt(BuildError::Unreadable { commit: self.commit, source })
    }
}

/// Returns a file that changes, unless it is removed.
fn changed_file((path, text): (&String, &Option<String>)) -> Option<SourceFile> {
    let bytes = text.as_ref()?.as_bytes();
    let content = match bytes.len() as u64 {
        size if size > Limits::DEFAULT.file_bytes => SourceContent::TooLarge(size),
        _ => SourceContent::Bytes(bytes.into()),
    };
    Some(SourceFile { path: path.as_str().into(), content })
}
