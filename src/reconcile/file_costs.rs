//! What the files of a commit cost, counted before any of them is read.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use rayon::prelude::*;

use super::open_repositories::OpenRepositories;
use super::tree_files::TreeFile;
use crate::document::Limits;
use crate::git::{EntryKind, ReadError, Repository};
use crate::model::{BlobId, BudgetItem, Exceeded, Meter};
use crate::validation::FileReading;

/// Why the files of a commit are not counted to the end.
pub(super) enum Uncounted {
    Unreadable(ReadError),
    TooLarge(Exceeded),
}

impl From<Exceeded> for Uncounted {
    fn from(exceeded: Exceeded) -> Self {
        Self::TooLarge(exceeded)
    }
}

/// How many bytes blobs have.
pub(super) type BlobSizes = HashMap<BlobId, u64>;

/// How many sizes one thread looks up at once.
const CHUNK: usize = 1024;

/// Charges the sizes of files by the headers of their objects, and everything of those whose reading
/// is known. Returns the sizes.
pub(super) fn charge_files(
    repository: &Repository,
    repositories: &OpenRepositories,
    files: &[TreeFile<'_>],
    known: &mut [Option<Arc<FileReading>>],
    meter: &Meter,
) -> Result<BlobSizes, Uncounted> {
    // What is larger is not read.
    let within = |size: u64| if size > Limits::DEFAULT.file_bytes { 0 } else { size };
    let sizes = sizes_of(repository, repositories, files, known).map_err(Uncounted::Unreadable)?;
    let mut charged = HashSet::with_capacity(sizes.len());
    for (file, known) in files.iter().zip(known) {
        let EntryKind::File(blob) = file.entry.kind else { continue };
        let Some(size) = sizes.get(&blob).copied() else { continue };
        if charged.insert(blob) {
            meter.charge(BudgetItem::DistinctBytes, within(size))?;
        }
        meter.charge(BudgetItem::DocumentBytes, within(size))?;
        if let Some(reading) = known {
            let rest = reading.cost().with(BudgetItem::DocumentBytes, 0);
            let findings = rest.get(BudgetItem::Findings);
            meter.charge_all(&rest.with(BudgetItem::Findings, 0))?;
            if meter.charge(BudgetItem::Findings, findings).is_err() {
                // It is read again, and what there is no room for is counted.
                *known = None;
            }
        }
    }
    Ok(sizes)
}

/// Returns the sizes of all files: those of the files that have been read, and what the headers of the other objects
/// say.
fn sizes_of(
    repository: &Repository,
    repositories: &OpenRepositories,
    files: &[TreeFile<'_>],
    known: &[Option<Arc<FileReading>>],
) -> Result<BlobSizes, ReadError> {
    let mut sizes = BlobSizes::with_capacity(files.len());
    let (mut unknown, mut asked) = (Vec::new(), HashSet::new());
    for (file, known) in files.iter().zip(known) {
        let EntryKind::File(blob) = file.entry.kind else { continue };
        match known.as_ref().map(|it| it.cost().get(BudgetItem::DocumentBytes)) {
            Some(size) if size > 0 => {
                sizes.insert(blob, size);
            }
            _ if asked.insert(blob) => unknown.push(blob),
            _ => {}
        }
    }
    unknown.retain(|it| !sizes.contains_key(it));
    let read = |repository: &Repository, blobs: &[BlobId]| -> Result<Vec<u64>, ReadError> {
        blobs.iter().map(|it| repository.blob_size(*it)).collect()
    };
    if unknown.len() <= CHUNK {
        sizes.extend(unknown.iter().copied().zip(read(repository, &unknown)?));
        return Ok(sizes);
    }
    let chunks: Vec<Vec<u64>> = unknown
        .par_chunks(CHUNK)
        .map(|blobs| repositories.with(|repository| read(repository, blobs)))
        .collect::<Result<_, ReadError>>()?;
    sizes.extend(unknown.iter().copied().zip(chunks.into_iter().flatten()));
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::TreeEntry;
    use crate::model::Budget;
    use crate::validation::Layout;

    #[test]
    fn sizes_read_by_several_threads_are_charged_once_for_each_content() {
        let directory = tempfile::tempdir().unwrap();
        let inner = git2::Repository::init(directory.path()).unwrap();
        let entry = |number: usize| {
            // Every third file says the same as the one before.
            let text = "x".repeat(number - usize::from(number % 3 == 2));
            let id = inner.blob(text.as_bytes()).unwrap().to_string();
            let path = format!("groups/{number}.yaml");
            TreeEntry { path, kind: EntryKind::File(id.parse().unwrap()) }
        };
        let charged = |count: usize| {
            let entries: Vec<TreeEntry> = (0..count).map(entry).collect();
            let layout = Layout::default();
            let files: Vec<TreeFile<'_>> =
                entries.iter().filter_map(|it| TreeFile::of(it, &layout)).collect();
            assert_eq!(files.len(), count);
            let repository = Repository::discover(directory.path()).unwrap();
            let repositories = OpenRepositories::of(&repository);
            let (meter, mut known) = (Meter::new(Budget::DEFAULT), vec![None; count]);
            let sizes = charge_files(&repository, &repositories, &files, &mut known, &meter);
            let counts = meter.counts();
            let distinct = counts.get(BudgetItem::DistinctBytes);
            (sizes.ok().unwrap().len(), counts.get(BudgetItem::DocumentBytes), distinct)
        };
        for count in [9, 3 * CHUNK] {
            let size = |it: usize| (it - usize::from(it % 3 == 2)) as u64;
            let distinct = (0..count).filter(|it| it % 3 != 2);
            let expected = (
                distinct.clone().count(),
                (0..count).map(size).sum::<u64>(),
                distinct.map(size).sum::<u64>(),
            );
            assert_eq!(charged(count), expected, "{count} files");
        }
    }
}
