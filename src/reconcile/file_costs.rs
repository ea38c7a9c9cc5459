//! What the files of a commit cost, counted before any of them is read.

use std::sync::Arc;

use hashbrown::HashMap;

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

/// Charges the sizes of files by the headers of their objects, and everything of those whose reading
/// is known. Returns the sizes.
pub(super) fn charge_files(
    repository: &Repository,
    files: &[TreeFile<'_>],
    known: &mut [Option<Arc<FileReading>>],
    meter: &Meter,
) -> Result<BlobSizes, Uncounted> {
    // What is larger is not read.
    let within = |size: u64| if size > Limits::DEFAULT.file_bytes { 0 } else { size };
    let mut sizes = BlobSizes::new();
    for (file, known) in files.iter().zip(known) {
        let EntryKind::File(blob) = file.entry.kind else { continue };
        let size = match (sizes.get(&blob), known.as_ref()) {
            (Some(size), _) => *size,
            (None, known) => {
                let size = match known.map(|it| it.cost().get(BudgetItem::DocumentBytes)) {
                    Some(size) if size > 0 => size,
                    _ => repository.blob_size(blob).map_err(Uncounted::Unreadable)?,
                };
                meter.charge(BudgetItem::DistinctBytes, within(size))?;
                sizes.insert(blob, size);
                size
            }
        };
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
