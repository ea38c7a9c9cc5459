//! The rows of check-ins in redb: the one file that another database would replace.
//!
//! Beside the check-ins stand who was seen when, and an index of that by age, so that limits and
//! forgetting cost no walk over all rows and no memory that grows with the fleet.

#![expect(clippy::disallowed_methods, reason = "this is where the file is opened")]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use redb::backends::InMemoryBackend;
use redb::{
    ReadableDatabase as _, ReadableTable as _, ReadableTableMetadata as _, Table, TableDefinition,
    TableError, WriteTransaction,
};
use serde::Deserialize;

use super::check_in::{FactsPresence, Row};
use super::error::{StoreError, StoreFault, failed, storage};

/// Certname to the JSON text of the check-in.
const CHECK_INS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("check-ins");

/// First seen, last seen, bytes, has facts, rank.
type Seen = (i64, i64, u64, bool, u8);
const SEEN: TableDefinition<'_, &str, Seen> = TableDefinition::new("seen");

/// Rank, last seen, certname: the first is the first to go.
const BY_AGE: TableDefinition<'_, (u8, i64, &str), ()> = TableDefinition::new("by-age");

const TOTALS: TableDefinition<'_, &str, u64> = TableDefinition::new("totals");
const BYTES: &str = "bytes";

/// A node that was seen once. Made-up names are; where the limit is reached, the oldest makes room.
const ONCE: u8 = 0;
/// A node that came back, or whose facts were acknowledged: it is never evicted.
const SETTLED: u8 = 1;

/// How long after it was first seen a node must come back to be settled, in seconds.
const SETTLES_AFTER: i64 = 600;

/// How many nodes are forgotten in one transaction.
const FORGET: usize = 1000;

/// What is written to find out whether writing works.
const PROBE: TableDefinition<'_, (), &[u8]> = TableDefinition::new("probe");

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// How many nodes.
    pub nodes: u64,
    /// How many bytes of check-ins; the file is up to three times as large.
    pub bytes: u64,
    /// For how long a node that is not seen again.
    pub forget_after: Duration,
}

/// A row that is to be written.
#[derive(Clone, Debug)]
pub(super) struct Fresh {
    pub(super) row: Arc<Row>,
    pub(super) keeping: Keeping,
}

/// What was said about the keeping of a check-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeping {
    /// Nothing.
    Noted,
    /// An acknowledgement says that it is on disk.
    Promised,
}

/// What the store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) nodes: u64,
    pub(super) bytes: u64,
}

/// An open file of check-ins, or the memory that stands for one.
#[derive(Debug)]
pub(super) struct Database {
    inner: redb::Database,
    file: Option<(PathBuf, File)>,
}

impl Database {
    /// Opens the file, or memory without one, and makes the tables.
    pub(super) fn open(path: Option<&Path>, cache: usize) -> Result<Self, StoreError> {
        let mut builder = redb::Builder::new();
        builder.set_cache_size(cache);
        guarded("opened", || {
            let database = match path {
                None => {
                    let backend = InMemoryBackend::new();
                    let inner = builder.create_with_backend(backend).map_err(failed("opened"))?;
                    Self { inner, file: None }
                }
                Some(path) => {
                    let is_new = !path.exists();
                    let mut options = OpenOptions::new();
                    options.read(true).write(true).create(true).truncate(false).mode(0o600);
                    let file = options.open(path)?;
                    let copy = file.try_clone()?;
                    let inner = builder.create_file(file).map_err(failed("opened"))?;
                    if let Some(directory) = path.parent().filter(|_| is_new) {
                        // Else the name may be gone after a power failure, with all that was promised.
                        File::open(directory)?.sync_all()?;
                    }
                    Self { inner, file: Some((path.to_owned(), copy)) }
                }
            };
            database.make_tables()?;
            Ok(database)
        })
    }

    /// Makes the tables; a file that an older version wrote has check-ins alone.
    fn make_tables(&self) -> Result<(), StoreError> {
        let reading = self.inner.begin_read().map_err(failed("opened"))?;
        let has_all = match (reading.open_table(CHECK_INS), reading.open_table(SEEN)) {
            (Ok(check_ins), Ok(seen)) => {
                check_ins.len().map_err(storage("opened"))?
                    == seen.len().map_err(storage("opened"))?
            }
            (Err(TableError::TableDoesNotExist(_)), _)
            | (_, Err(TableError::TableDoesNotExist(_))) => false,
            (Err(error), _) | (_, Err(error)) => return Err(failed("opened")(error)),
        };
        drop(reading);
        if has_all {
            return Ok(());
        }
        let write = self.inner.begin_write().map_err(failed("opened"))?;
        write.delete_table(SEEN).map_err(failed("opened"))?;
        write.delete_table(BY_AGE).map_err(failed("opened"))?;
        write.delete_table(TOTALS).map_err(failed("opened"))?;
        {
            let check_ins = write.open_table(CHECK_INS).map_err(failed("opened"))?;
            let mut tables = AgeIndex::open(&write, "opened")?;
            for entry in check_ins.iter().map_err(storage("opened"))? {
                let (name, value) = entry.map_err(storage("opened"))?;
                let time = serde_json::from_slice::<Time>(value.value())
                    .map_or_else(|_| Timestamp::now().as_second(), |it| it.time.as_second());
                let size = value.value().len() as u64;
                tables.put(name.value(), None, (time, time, size, true, SETTLED))?;
            }
            tables.finish()?;
        }
        write.commit().map_err(failed("opened"))
    }

    /// Writes rows and syncs them; returns the names of those for which the limits leave no room.
    pub(super) fn write<'b>(
        &self,
        batch: impl Iterator<Item = (&'b str, &'b Fresh)>,
        limits: &StoreLimits,
    ) -> Result<(Vec<&'b str>, Size), StoreError> {
        guarded("written", || {
            let write = self.inner.begin_write().map_err(failed("written"))?;
            let mut refused = Vec::new();
            let size = {
                let mut check_ins = write.open_table(CHECK_INS).map_err(failed("written"))?;
                let mut index = AgeIndex::open(&write, "written")?;
                for (name, fresh) in batch {
                    if !put(&mut check_ins, &mut index, name, fresh, limits)? {
                        refused.push(name);
                    }
                }
                let bytes = index.finish()?;
                Size { nodes: check_ins.len().map_err(storage("written"))?, bytes }
            };
            write.commit().map_err(failed("written"))?;
            Ok((refused, size))
        })
    }

    /// Finds out whether writing works: a few bytes may find room where a check-in does not.
    pub(super) fn probe(&self) -> Result<(), StoreError> {
        guarded("written", || {
            let write = self.inner.begin_write().map_err(failed("written"))?;
            {
                let mut table = write.open_table(PROBE).map_err(failed("written"))?;
                table.insert((), vec![0_u8; 64 << 10].as_slice()).map_err(storage("written"))?;
            }
            write.commit().map_err(failed("written"))
        })
    }

    /// Forgets nodes that were last seen before a time, in seconds since 1970; returns how many.
    pub(super) fn forget(&self, before: i64) -> Result<usize, StoreError> {
        guarded("written", || {
            let write = self.inner.begin_write().map_err(failed("written"))?;
            let mut count = 0;
            {
                let mut check_ins = write.open_table(CHECK_INS).map_err(failed("written"))?;
                let mut index = AgeIndex::open(&write, "written")?;
                for rank in [ONCE, SETTLED] {
                    for name in index.oldest(rank, before, FORGET)? {
                        check_ins.remove(name.as_str()).map_err(storage("written"))?;
                        index.remove(&name)?;
                        count += 1;
                    }
                }
                index.finish()?;
            }
            if count == 0 {
                write.abort().map_err(failed("written"))?;
                return Ok(0);
            }
            write.commit().map_err(failed("written"))?;
            Ok(count)
        })
    }

    /// Returns what `read` makes of the check-in of a node, as it was written. It must not wait: what is
    /// read cannot be overwritten.
    pub(super) fn with_row<T>(
        &self,
        name: &str,
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, StoreError> {
        guarded("read", || {
            let reading = self.inner.begin_read().map_err(failed("read"))?;
            let table = reading.open_table(CHECK_INS).map_err(failed("read"))?;
            let found = table.get(name).map_err(storage("read"))?;
            Ok(found.map(|it| read(it.value())))
        })
    }

    /// Returns how many bytes the check-in of a node has, without reading it.
    pub(super) fn row_bytes(&self, name: &str) -> Result<Option<usize>, StoreError> {
        guarded("read", || {
            let reading = self.inner.begin_read().map_err(failed("read"))?;
            let table = reading.open_table(SEEN).map_err(failed("read"))?;
            let found = table.get(name).map_err(storage("read"))?;
            Ok(found.map(|it| usize::try_from(it.value().2).unwrap_or(usize::MAX)))
        })
    }

    /// Returns the first name from a name on and how many bytes its row has, without reading the row.
    pub(super) fn first_from(&self, from: &str) -> Result<Option<(String, usize)>, StoreError> {
        guarded("read", || {
            let reading = self.inner.begin_read().map_err(failed("read"))?;
            let table = reading.open_table(SEEN).map_err(failed("read"))?;
            let first = table.range(from..).map_err(storage("read"))?.next();
            let Some(entry) = first else { return Ok(None) };
            let (name, seen) = entry.map_err(storage("read"))?;
            let bytes = usize::try_from(seen.value().2).unwrap_or(usize::MAX);
            Ok(Some((name.value().to_owned(), bytes)))
        })
    }

    /// Returns rows by name from a name on, until they have so many bytes; at least one, if there is
    /// one.
    pub(super) fn rows(
        &self,
        from: &str,
        bytes: usize,
    ) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        guarded("read", || {
            let reading = self.inner.begin_read().map_err(failed("read"))?;
            let table = reading.open_table(CHECK_INS).map_err(failed("read"))?;
            let (mut rows, mut taken) = (Vec::new(), 0);
            for entry in table.range(from..).map_err(storage("read"))? {
                let (name, value) = entry.map_err(storage("read"))?;
                taken += value.value().len();
                if !rows.is_empty() && taken > bytes {
                    break;
                }
                rows.push((name.value().to_owned(), value.value().to_vec()));
            }
            Ok(rows)
        })
    }

    /// Returns the name at an offset, in the order of names; none after the last.
    pub(super) fn name_at(&self, offset: usize) -> Result<Option<String>, StoreError> {
        guarded("read", || {
            let reading = self.inner.begin_read().map_err(failed("read"))?;
            let table = reading.open_table(SEEN).map_err(failed("read"))?;
            let found = table.iter().map_err(storage("read"))?.nth(offset).transpose();
            Ok(found.map_err(storage("read"))?.map(|(name, _)| name.value().to_owned()))
        })
    }

    /// Returns how much is kept.
    pub(super) fn size(&self) -> Result<Size, StoreError> {
        guarded("read", || {
            let reading = self.inner.begin_read().map_err(failed("read"))?;
            let table = reading.open_table(SEEN).map_err(failed("read"))?;
            let totals = reading.open_table(TOTALS).map_err(failed("read"))?;
            let bytes = totals.get(BYTES).map_err(storage("read"))?.map_or(0, |it| it.value());
            Ok(Size { nodes: table.len().map_err(storage("read"))?, bytes })
        })
    }

    /// Returns whether the file that is open is still the one of its name: what is written to a file
    /// that was removed is gone at the next start.
    pub(super) fn is_in_place(&self) -> bool {
        let Some((path, file)) = &self.file else { return true };
        let same = |named: std::fs::Metadata| {
            let open = file.metadata()?;
            Ok::<_, std::io::Error>((named.dev(), named.ino()) == (open.dev(), open.ino()))
        };
        std::fs::metadata(path).and_then(same).unwrap_or(false)
    }

    /// Returns whether this is memory that stands for a file which nothing was written to yet.
    pub(super) fn is_in_memory(&self) -> bool {
        self.file.is_none()
    }

    /// Copies every row to another database.
    pub(super) fn copy_to(&self, other: &Self, limits: &StoreLimits) -> Result<(), StoreError> {
        let mut from = String::new();
        loop {
            let rows = self.rows(&from, COPIED)?;
            let Some((last, _)) = rows.last() else { return Ok(()) };
            // No name stands between one and the same with a NUL behind it.
            from = format!("{last}\0");
            let rows: Vec<(String, Fresh)> = rows.into_iter().map(promised).collect();
            other.write(rows.iter().map(|(name, fresh)| (name.as_str(), fresh)), limits)?;
        }
    }
}

/// How many bytes are copied in one transaction.
const COPIED: usize = 8 << 20;

#[derive(Deserialize)]
struct Time {
    time: Timestamp,
}

fn promised((name, bytes): (String, Vec<u8>)) -> (String, Fresh) {
    let time = serde_json::from_slice::<Time>(&bytes)
        .map_or_else(|_| Timestamp::now().as_second(), |it| it.time.as_second());
    let row = Arc::new(Row { bytes, time, facts: FactsPresence::Some });
    (name, Fresh { row, keeping: Keeping::Promised })
}

/// Puts a row into the tables; returns whether there is room.
fn put(
    check_ins: &mut Table<'_, &str, &[u8]>,
    index: &mut AgeIndex<'_>,
    name: &str,
    fresh: &Fresh,
    limits: &StoreLimits,
) -> Result<bool, StoreError> {
    let row = &fresh.row;
    let known = index.seen(name)?;
    let size = row.bytes.len() as u64;
    let has_facts = row.facts == FactsPresence::Some;
    if let Some((first, _, size, true, rank)) = known.filter(|_| !has_facts) {
        // A request without facts says that the node is there; its facts stay.
        index.put(name, known, (first, row.time, size, true, rank))?;
        return Ok(true);
    }
    if size > limits.bytes {
        return Ok(false);
    }
    let before = known.map_or(0, |it| it.2);
    let is_full = |index: &AgeIndex<'_>| -> Result<bool, StoreError> {
        let nodes = index.nodes()? + u64::from(known.is_none());
        Ok(nodes > limits.nodes || index.bytes - before + size > limits.bytes)
    };
    while is_full(index)? {
        let oldest = index.oldest(ONCE, i64::MAX, 2)?.into_iter().find(|it| it != name);
        let Some(oldest) = oldest else { return Ok(false) };
        check_ins.remove(oldest.as_str()).map_err(storage("written"))?;
        index.remove(&oldest)?;
    }
    let first = known.map_or(row.time, |it| it.0);
    let came_back = row.time.saturating_sub(first) >= SETTLES_AFTER;
    let was_settled = known.is_some_and(|it| it.4 == SETTLED);
    let is_settled = fresh.keeping == Keeping::Promised || came_back || was_settled;
    let rank = if is_settled { SETTLED } else { ONCE };
    check_ins.insert(name, row.bytes.as_slice()).map_err(storage("written"))?;
    index.put(name, known, (first, row.time, size, has_facts, rank))?;
    Ok(true)
}

/// Who was seen when, within a transaction.
struct AgeIndex<'t> {
    seen: Table<'t, &'static str, Seen>,
    by_age: Table<'t, (u8, i64, &'static str), ()>,
    totals: Table<'t, &'static str, u64>,
    bytes: u64,
}

impl<'t> AgeIndex<'t> {
    fn open(write: &'t WriteTransaction, action: &'static str) -> Result<Self, StoreError> {
        let seen = write.open_table(SEEN).map_err(failed(action))?;
        let by_age = write.open_table(BY_AGE).map_err(failed(action))?;
        let totals = write.open_table(TOTALS).map_err(failed(action))?;
        let bytes = totals.get(BYTES).map_err(storage(action))?.map_or(0, |it| it.value());
        Ok(Self { seen, by_age, totals, bytes })
    }

    fn seen(&self, name: &str) -> Result<Option<Seen>, StoreError> {
        Ok(self.seen.get(name).map_err(storage("written"))?.map(|it| it.value()))
    }

    fn nodes(&self) -> Result<u64, StoreError> {
        self.seen.len().map_err(storage("written"))
    }

    fn put(&mut self, name: &str, known: Option<Seen>, now: Seen) -> Result<(), StoreError> {
        if let Some((_, last, size, _, rank)) = known {
            self.by_age.remove((rank, last, name)).map_err(storage("written"))?;
            self.bytes = self.bytes.saturating_sub(size);
        }
        self.seen.insert(name, now).map_err(storage("written"))?;
        self.by_age.insert((now.4, now.1, name), ()).map_err(storage("written"))?;
        self.bytes += now.2;
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), StoreError> {
        let removed = self.seen.remove(name).map_err(storage("written"))?.map(|it| it.value());
        if let Some((_, last, size, _, rank)) = removed {
            self.by_age.remove((rank, last, name)).map_err(storage("written"))?;
            self.bytes = self.bytes.saturating_sub(size);
        }
        Ok(())
    }

    /// Returns the names of a rank that were last seen before a time, the oldest first.
    fn oldest(&self, rank: u8, before: i64, count: usize) -> Result<Vec<String>, StoreError> {
        let range = (rank, i64::MIN, "")..(rank, before, "");
        let found = self.by_age.range(range).map_err(storage("written"))?;
        found
            .take(count)
            .map(|entry| Ok(entry.map_err(storage("written"))?.0.value().2.to_owned()))
            .collect()
    }

    fn finish(mut self) -> Result<u64, StoreError> {
        self.totals.insert(BYTES, self.bytes).map_err(storage("written"))?;
        Ok(self.bytes)
    }
}

/// Runs an operation of redb, which meets some damage with a panic.
fn guarded<T>(
    action: &'static str,
    operation: impl FnOnce() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(operation)).unwrap_or_else(|_| {
        Err(StoreError::new(
            StoreFault::Damaged,
            action,
            "the file has data that the database never wrote",
        ))
    })
}
