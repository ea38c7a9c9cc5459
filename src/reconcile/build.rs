//! From a commit to a snapshot, or to what is wrong with it.

use std::sync::Arc;

use super::outcome::{BuildError, Outcome, Rejected};
use super::read::{Changes, Reading};
use super::reading_cache::ReadingCache;
use super::tree_files::{TreeFile, is_settings, source_file};
use crate::git::{FilesError, Repository};
use crate::model::{Budget, BudgetItem, CommitId, Counts, Meter};
use crate::snapshot::Snapshot;
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

impl Build<'_> {
    /// Builds the snapshot, from that of another commit where they have much in common.
    ///
    /// # Errors
    ///
    /// Returns an error if the commit cannot be read or is not wanted any more; a commit that is not
    /// valid is not an error.
    pub(super) fn run(&self, base: Option<&Built>) -> Result<Built, BuildError> {
        // The other commit may be gone from the repository: this one is not at fault.
        if let Some(Ok(Some(built))) = base.map(|base| self.amend(base)) {
            return Ok(built);
        }
        let Self { repository, commit, directory, cache, is_wanted, .. } = *self;
        let meter = &Arc::new(Meter::new(self.budget));
        let reading = Reading { repository, commit, directory, cache, meter, is_wanted };
        let mut checked = reading.check(&Changes::new())?;
        let diagnostics = std::mem::take(&mut checked.diagnostics);
        let outcome = match &checked.estate {
            Some(estate) => {
                let (estate, origins) = (estate.clone(), Arc::clone(&checked.origins));
                Outcome::Valid(Arc::new(Snapshot::new(commit, estate, origins, diagnostics)))
            }
            None => {
                // Nothing is built from it, and what its files say may be as much as a commit may
                // have.
                checked.forget_files();
                Outcome::Rejected(Arc::new(Rejected { commit, diagnostics }))
            }
        };
        let bytes = bytes_of(&checked.counts(), FULL);
        Ok(Built { outcome, checked: Arc::new(checked), bytes, base: None })
    }

    /// Builds a commit that differs from a valid one in what a few files say; `None` if it must be
    /// built from all files.
    fn amend(&self, base: &Built) -> Result<Option<Built>, BuildError> {
        let Self { repository, commit, directory, budget, .. } = *self;
        let Outcome::Valid(before) = &base.outcome else { return Ok(None) };
        let changes =
            repository.amended_files(before.commit, commit, directory, DIFFERENCES, &budget);
        let changes = match changes {
            Ok(Some(changes)) => changes,
            // Reading all files reports what is wrong.
            Ok(None) | Err(FilesError::NoDirectory(_) | FilesError::TooLarge(_)) => {
                return Ok(None);
            }
            Err(FilesError::Unreadable(source)) => {
                return Err(BuildError::Unreadable { commit, source });
            }
        };
        if changes.iter().any(|it| is_settings(&it.path)) {
            return Ok(None);
        }
        let layout = base.checked.layout();
        let files: Vec<TreeFile<'_>> =
            changes.iter().filter_map(|entry| TreeFile::of(entry, layout)).collect();
        let counted = counts_without(&base.checked, files.iter().map(|it| &*it.path));
        let meter = Arc::new(Meter::from(budget, counted));
        let Some(readings) = self.read_within(&files, &meter)? else { return Ok(None) };
        let Some(mut checked) = base.checked.incremental(&readings, &meter) else {
            return Ok(None);
        };
        let Some(estate) = checked.estate.clone() else { return Ok(None) };
        let (origins, warnings) =
            (Arc::clone(&checked.origins), std::mem::take(&mut checked.diagnostics));
        let snapshot = before.amended(commit, estate, origins, warnings);
        let groups = checked.counts().get(BudgetItem::Groups);
        let changed = readings.iter().map(|it| bytes_of(&it.cost, SHARED)).sum::<u64>();
        Ok(Some(Built {
            outcome: Outcome::Valid(Arc::new(snapshot)),
            checked: Arc::new(checked),
            bytes: changed + groups * SHARED,
            base: Some(before.commit),
        }))
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
                Some(reading) => meter.charge_all(&reading.cost).map(|()| reading),
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
            let size = reading.cost.get(BudgetItem::DocumentBytes);
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
