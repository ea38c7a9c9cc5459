//! The file of check-ins that versions before this one kept: imported once, then removed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::{ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::check_in::{CheckIn, Noted, Row};
use super::error::{StoreError, StoreFault};
use super::node_name::check_node_name;
use super::opening::put_aside;
use super::queue::{Fresh, Keeping};

/// Certname to the JSON text of the check-in.
const CHECK_INS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("check-ins");

/// How many bytes of rows are imported together.
const TOGETHER: usize = 8 << 20;

/// What became of some rows.
pub(super) enum RowsKept {
    /// They are stored, but for so many.
    AllBut(usize),
    /// The daemon stops: they are not stored.
    Nothing,
}

/// What became of a former file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Import {
    /// It is gone from its place.
    Ended,
    /// The daemon stops: the next one begins again.
    Stopped,
}

/// Hands all check-ins of a former file to `keep`, some at a time, and then removes the file; one that is
/// damaged is put aside, and one whose nodes are not all stored is renamed. Up to `cache` bytes of the file are kept in
/// memory.
///
/// # Errors
///
/// Returns an error if they could not be kept; the file stays.
pub(super) fn import(
    path: &Path,
    cache: usize,
    keep: &mut dyn FnMut(Vec<(String, Fresh)>) -> Result<RowsKept, StoreError>,
) -> Result<Import, StoreError> {
    // Also where it panics.
    let mut is_kept = true;
    let mut keep = |rows| {
        is_kept = false;
        keep(rows).inspect(|_| is_kept = true)
    };
    // Some damage makes the library panic.
    let done = catch_unwind(AssertUnwindSafe(|| copy(path, cache, &mut keep)));
    let damage = || StoreError::new(StoreFault::Damaged, "read", "the former file is damaged");
    match done.unwrap_or_else(|_| Err(damage())) {
        Ok(None) => return Ok(Import::Stopped),
        Ok(Some(Copied { nodes, refused: 0 })) => {
            std::fs::remove_file(path)?;
            tracing::info!(nodes, path = %path.display(), "the check-ins of a former version are imported");
        }
        Ok(Some(Copied { nodes, refused })) => {
            let mut names = (1..).map(|it| path.with_extension(format!("redb.not-imported-{it}")));
            let free = names.find(|it| !it.exists());
            let kept = free.unwrap_or_else(|| path.to_owned());
            std::fs::rename(path, &kept)?;
            tracing::warn!(
                nodes, refused, path = %kept.display(),
                "not all nodes of a former version are imported: the file is kept; raise `--store-max-nodes` or `--store-max-bytes` and rename it to `check-ins.redb`, or remove it"
            );
        }
        // What is wrong with the store says nothing of this file.
        Err(error) if is_kept && error.calls_for_a_new_file() => put_aside(path, &error)?,
        Err(error) => return Err(error),
    }
    Ok(Import::Ended)
}

/// How many nodes a file had, and how many of them are not stored.
struct Copied {
    nodes: usize,
    refused: usize,
}

/// Returns none if it was stopped.
fn copy(
    path: &Path,
    cache: usize,
    keep: &mut dyn FnMut(Vec<(String, Fresh)>) -> Result<RowsKept, StoreError>,
) -> Result<Option<Copied>, StoreError> {
    let database = redb::Builder::new().set_cache_size(cache).open(path).map_err(failed)?;
    let reading = database.begin_read().map_err(failed)?;
    let table = match reading.open_table(CHECK_INS) {
        Err(redb::TableError::TableDoesNotExist(_)) => {
            return Ok(Some(Copied { nodes: 0, refused: 0 }));
        }
        opened => opened.map_err(failed)?,
    };
    let mut copied = Copied { nodes: 0, refused: 0 };
    let (mut some, mut bytes) = (Vec::new(), 0);
    for entry in table.iter().map_err(failed)? {
        let (name, value) = entry.map_err(failed)?;
        // A row that makes no sense made none before either.
        let Some(row) = row(value.value()) else { continue };
        let name = name.value();
        if let Err(error) = check_node_name(name) {
            // Former versions took any text; no client can have meant this one, or ask for it.
            tracing::warn!(node = ?name, %error, "a node of a former version is left out");
            continue;
        }
        bytes += row.body.len();
        copied.nodes += 1;
        some.push((name.to_owned(), Fresh::new(row.into(), Keeping::Promised)));
        if bytes > TOGETHER {
            match keep(std::mem::take(&mut some))? {
                RowsKept::AllBut(refused) => copied.refused += refused,
                RowsKept::Nothing => return Ok(None),
            }
            bytes = 0;
        }
    }
    match keep(some)? {
        RowsKept::AllBut(refused) => copied.refused += refused,
        RowsKept::Nothing => return Ok(None),
    }
    Ok(Some(copied))
}

fn row(text: &[u8]) -> Option<Row> {
    let check_in: CheckIn = serde_json::from_slice(text).ok()?;
    Row::of(&Noted::from(&check_in))
}

fn failed(error: impl Into<redb::Error>) -> StoreError {
    let error = error.into();
    let fault = match &error {
        redb::Error::Corrupted(_)
        | redb::Error::UpgradeRequired(_)
        | redb::Error::RepairAborted
        | redb::Error::TableTypeMismatch { .. }
        | redb::Error::TypeDefinitionChanged { .. }
        | redb::Error::TableIsMultimap(_) => StoreFault::Damaged,
        redb::Error::DatabaseAlreadyOpen => StoreFault::Locked,
        redb::Error::Io(error) => super::error::fault_of_io(error),
        _ => StoreFault::Io,
    };
    StoreError::new(fault, "read", error.to_string())
}
