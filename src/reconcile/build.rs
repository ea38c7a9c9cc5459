//! From a commit to a snapshot, or to what is wrong with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use rayon::prelude::*;

use super::cache::{Cache, Key};
use super::controller::Controller;
use crate::diagnostic::{Diagnostic, Kind};
use crate::document::Limits;
use crate::git::{EntryKind, FilesError, ReadError, Repository, TreeEntry};
use crate::model::{BlobId, Budget, BudgetItem, CommitId, Counts, Exceeded, Meter};
use crate::snapshot::Snapshot;
use crate::validation::{
    Checked, FileKind, FileReading, Layout, Search, SourceContent, SourceFile, check, no_groups,
    read_layout, too_large,
};

/// What came of a commit.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It is valid.
    Valid(Arc<Snapshot>),
    /// It is not, and never answers.
    Rejected(Arc<Rejected>),
}

impl Outcome {
    /// Returns the commit.
    pub(super) fn commit(&self) -> CommitId {
        match self {
            Self::Valid(snapshot) => snapshot.commit,
            Self::Rejected(rejected) => rejected.commit,
        }
    }

    /// Returns whether it exceeds the budget, so that a larger one may decide otherwise.
    pub(super) fn is_too_large(&self) -> bool {
        match self {
            Self::Valid(_) => false,
            Self::Rejected(rejected) => {
                rejected.diagnostics.iter().any(|it| it.kind == Kind::CommitTooLarge)
            }
        }
    }
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
    /// Too many wait for other commits to be built.
    #[error("other commits are being built: try again soon")]
    Busy,
    /// It is not wanted any more.
    #[error("the commit {0} is superseded")]
    Cancelled(CommitId),
}

/// Whether a build is still wanted; asked now and then.
pub(super) type Wanted<'a> = &'a (dyn Fn() -> bool + Sync);

/// What came of a commit, with what the next one can use of it.
#[derive(Clone, Debug)]
pub(super) struct Built {
    pub(super) outcome: Outcome,
    /// As long as it is held, the readings of its files stay in the cache.
    pub(super) checked: Arc<Checked>,
    /// About how much memory it takes beside what it shares with its base.
    pub(super) bytes: u64,
    /// The commit that it was built from, if most of its memory is shared with that one.
    pub(super) base: Option<CommitId>,
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
    budget: Budget,
    wanted: Wanted<'_>,
) -> Result<Built, BuildError> {
    // The other commit may be gone from the repository: that is no fault of this one.
    let amended = base.map(|base| amend(repository, commit, directory, cache, base, budget));
    if let Some(Ok(Some(built))) = amended {
        return Ok(built);
    }
    let meter = Arc::new(Meter::new(budget));
    let unchanged = Changes::new();
    let mut checked = read(repository, commit, directory, &unchanged, cache, &meter, wanted)?;
    let diagnostics = std::mem::take(&mut checked.diagnostics);
    let outcome = match &checked.estate {
        Some(estate) => {
            let (estate, origins) = (estate.clone(), Arc::clone(&checked.origins));
            Outcome::Valid(Arc::new(Snapshot::new(commit, estate, origins, diagnostics)))
        }
        None => {
            // Nothing is built from it, and what its files say may be as much as a commit may have.
            checked.forget_files();
            Outcome::Rejected(Arc::new(Rejected { commit, diagnostics }))
        }
    };
    let bytes = bytes_of(&checked.counts(), FULL);
    Ok(Built { outcome, checked: Arc::new(checked), bytes, base: None })
}

/// About how many bytes a group takes in a snapshot of its own, in index and prepared answers.
const FULL: u64 = 3_000;

/// About how many it takes in one that was built from another and shares most of that.
const SHARED: u64 = 600;

/// Estimates the memory of what was counted.
fn bytes_of(counts: &Counts, of_a_group: u64) -> u64 {
    counts.get(BudgetItem::Groups) * of_a_group
        + counts.get(BudgetItem::YamlNodes) * 150
        // Comparisons are small until a pattern among them is compiled to be searched for.
        + counts.get(BudgetItem::RuleTerms) * 2_000
        + counts.get(BudgetItem::DocumentBytes) * 2
        + counts.get(BudgetItem::Findings) * 1_000
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
    budget: Budget,
) -> Result<Option<Built>, BuildError> {
    let fail = |source| BuildError::Unreadable { commit, source };
    let Outcome::Valid(before) = &base.outcome else { return Ok(None) };
    let changes = repository.amended_files(before.commit, commit, directory, DIFFERENCES, &budget);
    let changes = match changes {
        Ok(Some(changes)) => changes,
        // What is wrong is found again, and said, when all files are read.
        Ok(None) | Err(FilesError::NoDirectory(_) | FilesError::TooLarge(_)) => return Ok(None),
        Err(FilesError::Unreadable(error)) => return Err(fail(error)),
    };
    let layout = base.checked.layout();
    let mut files = Vec::new();
    for entry in &changes {
        if is_settings(&entry.path) {
            return Ok(None);
        }
        files.extend(File::of(entry, layout));
    }
    let counted = counts_without(&base.checked, files.iter().map(|it| &*it.path));
    let meter = Arc::new(Meter::from(budget, counted));
    let mut readings = Vec::new();
    for (file, known) in files.iter().zip(cache.get(&files)) {
        let charged = match known {
            Some(reading) => meter.charge_all(&reading.cost).map(|()| reading),
            None => {
                let source = source_file(repository, file.entry).map_err(fail)?;
                let size = source.size();
                let read = cache.read(&source, file.kind, &meter, Arc::new);
                let charged = meter.charge(BudgetItem::DocumentBytes, size);
                charged.and(read).map(|it| cache.keep_one(file, it))
            }
        };
        let Ok(reading) = charged else { return Ok(None) };
        // Whether the same content stands elsewhere is not known here, so it counts as new.
        let size = reading.cost.get(BudgetItem::DocumentBytes);
        if meter.charge(BudgetItem::DistinctBytes, size).is_err() {
            return Ok(None);
        }
        readings.push(reading);
    }
    let Some(mut checked) = base.checked.incremental(&readings, &meter) else { return Ok(None) };
    let Some(estate) = checked.estate.clone() else { return Ok(None) };
    let (origins, warnings) =
        (Arc::clone(&checked.origins), std::mem::take(&mut checked.diagnostics));
    let snapshot = before.amended(commit, estate, origins, warnings);
    let groups = checked.counts().get(BudgetItem::Groups);
    let changed = readings.iter().map(|it| bytes_of(&it.cost, SHARED)).sum::<u64>();
    let bytes = changed + groups * SHARED;
    let outcome = Outcome::Valid(Arc::new(snapshot));
    let base = Some(before.commit);
    Ok(Some(Built { outcome, checked: Arc::new(checked), bytes, base }))
}

/// Returns what a commit costs without some of its files. The budget holds for a commit as a whole, so
/// where these are replaced, counting goes on from here.
pub(super) fn counts_without<'p>(
    checked: &Checked,
    paths: impl Iterator<Item = &'p str>,
) -> Counts {
    paths.fold(checked.counts(), |all, path| {
        checked.reading(path).map_or(all, |old| all.without(&old.cost))
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
) -> Result<Checked, BuildError> {
    let meter = Arc::new(Meter::new(Budget::DEFAULT));
    let (unchanged, cache) = (Changes::new(), Cache::default());
    read(repository, commit, directory, &unchanged, &cache, &meter, &|| true)
}

/// Files that replace those of a commit, by path; none removes one.
pub(super) type Changes = BTreeMap<String, Option<String>>;

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

/// Reads and checks the files of a commit's directory, as they are with some changes.
pub(super) fn read(
    repository: &Repository,
    commit: CommitId,
    directory: &str,
    changes: &Changes,
    cache: &Cache,
    meter: &Arc<Meter>,
    wanted: Wanted<'_>,
) -> Result<Checked, BuildError> {
    let rejected = |found| Ok(Checked::rejected(found, &Layout::default(), Search::Decisive));
    let entries = match repository.files(commit, directory, meter) {
        Ok(entries) => entries,
        Err(FilesError::Unreadable(source)) => {
            return Err(BuildError::Unreadable { commit, source });
        }
        Err(FilesError::TooLarge(exceeded)) => return rejected(too_large(exceeded)),
        Err(error @ FilesError::NoDirectory(_)) => {
            return rejected(no_groups(directory.into(), error.to_string()));
        }
    };
    match read_entries(repository, commit, &entries, changes, cache, meter, wanted) {
        Ok(checked) => Ok(checked),
        Err(Stop::Unbuilt(error)) => Err(error),
        Err(Stop::TooLarge(exceeded)) => rejected(too_large(exceeded)),
    }
}

/// Reads and checks files of a commit.
fn read_entries(
    repository: &Repository,
    commit: CommitId,
    entries: &[TreeEntry],
    changes: &Changes,
    cache: &Cache,
    meter: &Arc<Meter>,
    wanted: Wanted<'_>,
) -> Result<Checked, Stop> {
    let fail = |source| Stop::Unbuilt(BuildError::Unreadable { commit, source });
    let check_wanted = || {
        if wanted() { Ok(()) } else { Err(Stop::Unbuilt(BuildError::Cancelled(commit))) }
    };
    let kept = || entries.iter().filter(|it| !changes.contains_key(&it.path));
    let (settings, changed): (Vec<SourceFile>, Vec<SourceFile>) =
        changes.iter().filter_map(changed_file).partition(|it| is_settings(&it.path));
    let settings: Vec<SourceFile> = kept()
        .filter(|entry| is_settings(&entry.path))
        .map(|entry| source_file(repository, entry))
        .chain(settings.into_iter().map(Ok))
        .collect::<Result<_, _>>()
        .map_err(fail)?;
    let (layout, settings) = read_layout(&settings);
    let files: Vec<File<'_>> = kept().filter_map(|entry| File::of(entry, &layout)).collect();
    let mut known = cache.get(&files);
    let added = changed.iter().filter(|file| !entries.iter().any(|it| *it.path == *file.path));
    meter.charge(BudgetItem::Entries, added.count() as u64)?;
    for file in &changed {
        // Whether the same content stands elsewhere is not known here, so it counts as new.
        meter.charge(BudgetItem::DistinctBytes, file.size())?;
        meter.charge(BudgetItem::DocumentBytes, file.size())?;
    }
    weigh(repository, &files, &mut known, meter).map_err(|stop| match stop {
        Weighed::Unreadable(source) => fail(source),
        Weighed::TooLarge(exceeded) => Stop::TooLarge(exceeded),
    })?;
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
                Ok(cache.read(&source, file.kind, meter, Arc::new)?)
            };
            files.iter().zip(known).map(read).collect()
        })
        .collect::<Result<_, Stop>>()?;
    let mut readings: Vec<Arc<FileReading>> = stretches.into_iter().flatten().collect();
    // What lacks findings must not be taken for all that there is to find.
    if meter.dropped().is_none() {
        cache.keep(
            files
                .iter()
                .zip(&readings)
                .zip(&known)
                .filter(|(_, known)| known.is_none())
                .map(|(it, _)| it),
        );
    }
    for file in &changed {
        if let Some(kind) = layout.kind_of(file) {
            readings.push(cache.read(file, kind, meter, Arc::new)?);
        }
    }
    readings.extend(settings.map(Arc::new));
    check_wanted()?;
    Ok(check(&layout, &readings, Search::Decisive, meter))
}

/// Why files were not weighed to the end.
enum Weighed {
    Unreadable(ReadError),
    TooLarge(Exceeded),
}

impl From<Exceeded> for Weighed {
    fn from(exceeded: Exceeded) -> Self {
        Self::TooLarge(exceeded)
    }
}

/// Counts what files cost before any of them is read: the sizes by the headers of their objects, and
/// everything of those that are known.
fn weigh(
    repository: &Repository,
    files: &[File<'_>],
    known: &mut [Option<Arc<FileReading>>],
    meter: &Meter,
) -> Result<(), Weighed> {
    let mut sizes: HashMap<BlobId, u64> = HashMap::new();
    for (file, known) in files.iter().zip(known) {
        let EntryKind::File(blob) = file.entry.kind else { continue };
        let size = match (sizes.get(&blob), known.as_ref()) {
            (Some(size), _) => *size,
            (None, known) => {
                let size = match known.map(|it| it.cost.get(BudgetItem::DocumentBytes)) {
                    Some(size) if size > 0 => size,
                    _ => repository.blob_size(blob).map_err(Weighed::Unreadable)?,
                };
                // What is larger is not read.
                let size = if size > Limits::DEFAULT.file_bytes { 0 } else { size };
                meter.charge(BudgetItem::DistinctBytes, size)?;
                sizes.insert(blob, size);
                size
            }
        };
        meter.charge(BudgetItem::DocumentBytes, size)?;
        if let Some(reading) = known {
            let rest = reading.cost.with(BudgetItem::DocumentBytes, 0);
            let findings = rest.get(BudgetItem::Findings);
            meter.charge_all(&rest.with(BudgetItem::Findings, 0))?;
            if meter.charge(BudgetItem::Findings, findings).is_err() {
                // It is read again, and what there is no room for is counted.
                *known = None;
            }
        }
    }
    Ok(())
}

/// How many files one thread reads at once.
const STRETCH: usize = 256;

/// A file that has a part in the repository.
pub(super) struct File<'e> {
    pub(super) entry: &'e TreeEntry,
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

    /// Returns what it is known by; a link or submodule is not read.
    pub(super) fn key(&self) -> Option<Key> {
        match self.entry.kind {
            EntryKind::File(blob) => Some((blob, Arc::clone(&self.path), self.kind)),
            EntryKind::Link | EntryKind::Submodule => None,
        }
    }
}

fn is_settings(path: &str) -> bool {
    matches!(path, "clade.yaml" | "clade.yml")
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

/// Returns the files of a commit's directory that have a part in the repository, with their content.
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
        Err(error @ FilesError::NoDirectory(_)) => {
            return Err(no_groups(directory.into(), error.to_string()).into());
        }
    };
    let read = |entry: &TreeEntry| source_file(repository, entry).map_err(fail);
    let mut sources: Vec<SourceFile> =
        entries.iter().filter(|it| is_settings(&it.path)).map(read).collect::<Result<_, _>>()?;
    let (layout, _) = read_layout(&sources);
    let files: Vec<File<'_>> =
        entries.iter().filter_map(|entry| File::of(entry, &layout)).collect();
    let mut known = vec![None; files.len()];
    weigh(repository, &files, &mut known, meter).map_err(|stop| match stop {
        Weighed::Unreadable(source) => fail(source),
        Weighed::TooLarge(exceeded) => too_large(exceeded).into(),
    })?;
    for file in &files {
        sources.push(read(file.entry)?);
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

/// Returns the files of a commit's directory that are not read, but may be meant by their path.
///
/// # Errors
///
/// Returns an error if the commit cannot be read, or costs more than its budget.
pub fn meant_files(
    repository: &Repository,
    commit: CommitId,
    directory: &str,
    layout: &Layout,
) -> Result<Vec<SourceFile>, BuildError> {
    let fail = |source| BuildError::Unreadable { commit, source };
    let entries = match repository.files(commit, directory, &Meter::new(Budget::DEFAULT)) {
        Ok(entries) => entries,
        Err(FilesError::Unreadable(source)) => return Err(fail(source)),
        // That is said where the commit is read.
        Err(FilesError::TooLarge(_) | FilesError::NoDirectory(_)) => return Ok(Vec::new()),
    };
    let meant = entries.iter().filter(|it| layout.may_be_meant(&it.path));
    meant.map(|it| source_file(repository, it).map_err(fail)).collect()
}

/// The files of a commit are not there.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SourceError {
    /// It could not be read.
    #[error(transparent)]
    Unbuilt(#[from] BuildError),
    /// It is not valid, whatever its files say.
    #[error("{}", .0.message)]
    Rejected(Box<Diagnostic>),
}

impl From<Diagnostic> for SourceError {
    fn from(found: Diagnostic) -> Self {
        Self::Rejected(Box::new(found))
    }
}
