//! From a commit to a snapshot, or to what is wrong with it.

use std::sync::{Arc, OnceLock};

use super::commit_tree::Changes;
use super::outcome::{BuildError, Outcome, Rejected};
use super::read::Reading;
use super::reading_cache::ReadingCache;
use super::tree_files::{TreeFile, is_settings, source_file};
use crate::git::{FileChanges, FilesError, Repository};
use crate::hierarchy::Hierarchy;
use crate::model::{Budget, BudgetItem, CommitId, Counts, Meter};
use crate::snapshot::{Index, Snapshot};
use crate::validation::{Checked, FileReading};

/// What a build left: its outcome, with what the next build can use of it.
#[derive(Clone, Debug)]
pub(super) struct Built {
    pub(super) outcome: Outcome,
    /// As long as it is held, the readings of its files stay in the cache.
    pub(super) checked: Arc<Checked>,
    /// About how much memory it takes beside what it shares with its base.
    pub(super) bytes: u64,
    /// The commit that it was built from, if most of its memory is shared with that one.
    pub(super) base: Option<CommitId>,
    /// Whether a write made the commit, and it was not pushed.
    pub(super) is_unpushed: bool,
}

/// A build of one commit.
pub(super) struct Build<'b> {
    pub(super) repository: &'b Repository,
    pub(super) commit: CommitId,
    /// The directory of the groups.
    pub(super) directory: &'b str,
    pub(super) cache: &'b ReadingCache,
    pub(super) budget: Budget,
    /// Whether the result is still wanted; asked now and then.
    pub(super) is_wanted: &'b (dyn Fn() -> bool + Sync),
}

/// How many files may differ for a commit to be built from another.
const DIFFERENCES: usize = 64;

/// The files of a commit, read and checked.
#[derive(Clone, Debug)]
pub(super) struct CheckedFiles {
    pub(super) checked: Arc<Checked>,
    /// What the files cost that differ from those of the commit that they were read from; none where all
    /// were read.
    amended: Option<Vec<Counts>>,
}

impl Build<'_> {
    /// Builds the snapshot, from that of another commit where they have much in common.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit cannot be read or is not wanted any more; a commit that is not
    /// valid is not an error.
    pub(super) fn run(&self, base: Option<&Built>) -> Result<Built, BuildError> {
        let base = base.and_then(|built| match &built.outcome {
            Outcome::Valid(snapshot) => Some((snapshot, &*built.checked)),
            Outcome::Rejected(_) => None,
        });
        let compiled = OnceLock::new();
        let compile = |hierarchy: &Hierarchy| {
            compiled.get_or_init(|| Index::new(hierarchy));
        };
        let of_base = base.map(|(snapshot, checked)| (snapshot.commit, checked));
        let CheckedFiles { checked, amended } = self.files_beside(of_base, &compile)?;
        let mut checked = Arc::unwrap_or_clone(checked);
        let commit = self.commit;
        let diagnostics = std::mem::take(&mut checked.diagnostics);
        let before = base.filter(|_| amended.is_some()).map(|(snapshot, _)| snapshot);
        let outcome = match &checked.estate {
            Some(estate) => {
                let (estate, origins) = (estate.clone(), Arc::clone(&checked.origins));
                let snapshot = match before {
                    Some(before) => before.amended(commit, estate, origins, diagnostics),
                    None => {
                        let index = compiled.into_inner();
                        let index = index.unwrap_or_else(|| Index::new(&estate.hierarchy));
                        Snapshot::indexed(commit, estate, index, origins, diagnostics)
                    }
                };
                let before = before.map(|it| &**it);
                let snapshot = snapshot.with_node_origins(checked.node_origins(), before);
                Outcome::Valid(Arc::new(snapshot))
            }
            None => {
                // Nothing is built from it, and what its files say may be as much as a commit may
                // have.
                checked.forget_files();
                Outcome::Rejected(Arc::new(Rejected { commit, diagnostics }))
            }
        };
        let bytes = match (&outcome, before, &amended) {
            (Outcome::Valid(snapshot), Some(before), Some(changed)) => {
                let of_files: u64 = changed.iter().map(|cost| bytes_of(cost, 0)).sum();
                of_files + snapshot.bytes_beside(before, &checked.counts())
            }
            _ => bytes_of(&checked.counts(), FULL),
        };
        let base = before.map(|it| it.commit);
        Ok(Built { outcome, checked: Arc::new(checked), bytes, base, is_unpushed: false })
    }

    /// Reads and checks the files, from those of another, valid commit where they have much in common.
    ///
    /// # Errors
    ///
    /// As [`Build::run`].
    pub(super) fn files(
        &self,
        base: Option<(CommitId, &Checked)>,
    ) -> Result<CheckedFiles, BuildError> {
        self.files_beside(base, &|_| {})
    }

    /// Reads and checks the files as [`Build::files`] does; where all are read, another thread does something else
    /// with the tree of their groups meanwhile.
    fn files_beside(
        &self,
        base: Option<(CommitId, &Checked)>,
        beside: &(dyn Fn(&Hierarchy) + Sync),
    ) -> Result<CheckedFiles, BuildError> {
        // The other commit may be gone from the repository: this one is not at fault.
        if let Some(Ok(Some(files))) = base.map(|(before, checked)| self.amend(before, checked)) {
            return Ok(files);
        }
        let Self { repository, commit, directory, cache, is_wanted, .. } = *self;
        let meter = &Arc::new(Meter::new(self.budget));
        let reading = Reading { repository, commit, directory, cache, meter, is_wanted };
        let checked = reading.check_beside(&Changes::new(), beside)?;
        Ok(CheckedFiles { checked: Arc::new(checked), amended: None })
    }

    /// Reads a commit that differs from a valid one in a few files; `None` if all its files must be read.
    fn amend(&self, before: CommitId, base: &Checked) -> Result<Option<CheckedFiles>, BuildError> {
        let Self { repository, commit, directory, budget, .. } = *self;
        let changes = repository.changes_between(before, commit, directory, DIFFERENCES, &budget);
        let changes = match changes {
            Ok(Some(changes)) => changes,
            // Reading all files reports what is wrong.
            Ok(None)
            | Err(
                FilesError::NoDirectory(_) | FilesError::TooLarge(_) | FilesError::Misplaced(_),
            ) => {
                return Ok(None);
            }
            Err(FilesError::Unreadable(source)) => {
                return Err(BuildError::Unreadable { commit, source });
            }
        };
        let FileChanges { written, removed, added_cost, removed_cost } = changes;
        let removed: Vec<&str> = removed.iter().map(String::as_str).collect();
        let mut paths = written.iter().map(|it| it.path.as_str()).chain(removed.iter().copied());
        if paths.any(|it| is_settings(it) || base.schemas().reads(it)) {
            return Ok(None);
        }
        let layout = base.layout();
        let files: Vec<TreeFile<'_>> =
            written.iter().filter_map(|entry| TreeFile::of(entry, layout)).collect();
        let differing = files.iter().map(|it| &*it.path).chain(removed.iter().copied());
        let counted = counts_without(base, differing).without(&removed_cost);
        let meter = Arc::new(Meter::from(budget, counted));
        if meter.charge_all(&added_cost).is_err() {
            return Ok(None);
        }
        let Some(readings) = self.read_within(&files, &meter)? else { return Ok(None) };
        let Some(checked) = base.incremental(&readings, &removed, &meter) else { return Ok(None) };
        if checked.estate.is_none() {
            return Ok(None);
        }
        let amended = Some(readings.iter().map(|it| it.cost()).collect());
        Ok(Some(CheckedFiles { checked: Arc::new(checked), amended }))
    }

    /// Reads the files that differ; `None` if they cost more than the budget leaves.
    fn read_within(
        &self,
        files: &[TreeFile<'_>],
        meter: &Arc<Meter>,
    ) -> Result<Option<Vec<Arc<FileReading>>>, BuildError> {
        let mut readings = Vec::new();
        for (file, known) in files.iter().zip(self.cache.get(files)) {
            let charged = match known {
                Some(reading) => meter.charge_all(&reading.cost()).map(|()| reading),
                None => {
                    let source = source_file(self.repository, file.entry)
                        .map_err(|source| BuildError::Unreadable { commit: self.commit, source })?;
                    let size = source.size();
                    let read = self.cache.read(&source, file.kind, meter, Arc::new);
                    let charged = meter.charge(BudgetItem::DocumentBytes, size);
                    charged.and(read).map(|it| self.cache.insert_one(file, it))
                }
            };
            let Ok(reading) = charged else { return Ok(None) };
            // Whether the same content stands elsewhere is not known here, so it counts as new.
            let size = reading.cost().get(BudgetItem::DocumentBytes);
            if meter.charge(BudgetItem::DistinctBytes, size).is_err() {
                return Ok(None);
            }
            readings.push(reading);
        }
        Ok(Some(readings))
    }
}

/// About how many bytes a group takes in a snapshot of its own, in index and prepared answers.
const FULL: u64 = 3_000;

/// Estimates the memory of what was counted.
fn bytes_of(counts: &Counts, of_a_group: u64) -> u64 {
    counts.get(BudgetItem::Groups) * of_a_group
        + counts.get(BudgetItem::YamlNodes) * 150
        // Comparisons are small until a pattern among them is compiled to be searched for.
        + counts.get(BudgetItem::RuleTerms) * 2_000
        + counts.get(BudgetItem::DocumentBytes) * 2
        + counts.get(BudgetItem::Findings) * 1_000
}

/// Returns what a commit costs without some of its files. The budget holds for a commit as a whole, so
/// where these are replaced, counting goes on from here.
pub(super) fn counts_without<'p>(
    checked: &Checked,
    paths: impl Iterator<Item = &'p str>,
) -> Counts {
    paths.fold(checked.counts(), |all, path| {
        checked.reading(path).map_or(all, |old| all.without(&old.cost()))
    })
}
