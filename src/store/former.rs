//! The file of check-ins that versions before this one kept: imported once, then removed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::{ReadableDatabase as _, ReadableTable as _, TableDefinition};

use super::check_in::{CheckIn, Noted, Row};
use super::error::{StoreError, StoreFault};
use super::opening::put_aside;
use super::queue::{Fresh, Keeping};

/// Certname to the JSON text of the check-in.
const CHECK_INS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("check-ins");

/// How many bytes of rows are imported together.
const TOGETHER: usize = 8 << 20;

/// Hands all check-ins of a former file to `keep`, some at a time, and then removes the file; one that is
/// damaged is put aside.
///
/// # Errors
///
/// Returns an error if they could not be kept; the file stays.
pub(super) fn import(
    path: &Path,
    keep: &mut dyn FnMut(Vec<(String, Fresh)>) -> Result<(), StoreError>,
    on_put_aside: impl FnOnce(),
) -> Result<(), StoreError> {
    if !path.exists() {
        return Ok(());
    }
    // Some damage makes the library panic.
    let done = catch_unwind(AssertUnwindSafe(|| copy(path, keep)));
    let damage = || StoreError::new(StoreFault::Damaged, "read", "the former file is damaged");
    match done.unwrap_or_else(|_| Err(damage())) {
        Ok(nodes) => {
            std::fs::remove_file(path)?;
            tracing::info!(nodes, path = %path.display(), "the check-ins of a former version are imported");
            Ok(())
        }
        Err(error) if error.calls_for_a_new_file() => {
            put_aside(path, &error)?;
            on_put_aside();
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn copy(
    path: &Path,
    keep: &mut dyn FnMut(Vec<(String, Fresh)>) -> Result<(), StoreError>,
) -> Result<usize, StoreError> {
    let database = redb::Database::open(path).map_err(failed)?;
    let reading = database.begin_read().map_err(failed)?;
    let table = match reading.open_table(CHECK_INS) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(0),
        opened => opened.map_err(failed)?,
    };
    let (mut some, mut bytes, mut count) = (Vec::new(), 0, 0);
    for entry in table.iter().map_err(failed)? {
        let (name, value) = entry.map_err(failed)?;
        // A row that makes no sense made none before either.
        let Some(row) = row(value.value()) else { continue };
        bytes += row.body.len();
        count += 1;
        let fresh = Fresh::new(row.into(), Keeping::Promised);
        some.push((name.value().to_owned(), fresh));
        if bytes > TOGETHER {
            keep(std::mem::take(&mut some))?;
            bytes = 0;
        }
    }
    keep(some)?;
    Ok(count)
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
