//! An open database of check-ins: SQLite or PostgreSQL, with the same statements.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use sqlx::AnyConnection;

use super::beside::log_of;
use super::error::{StoreError, StoreFault};
use super::generation;
use super::location::PostgresUrl;
use super::log_scan;
use super::on_disk::FilesOnDisk;
use super::schema;
use super::sql::{Connections, SqlitePlace, Statement, integer};
use super::tally::{is_counted, recount};

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// How many nodes.
    pub nodes: u64,
    /// How many bytes of check-ins, compressed; the file is somewhat larger.
    pub bytes: u64,
    /// For how long a node that is not seen again.
    pub forget_after: Duration,
    /// For how long changes of answers.
    pub history: Duration,
}

/// The digest of a row that is written to find out whether writing works.
const PROBE: &[u8] = b"probe";

/// What the store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) nodes: u64,
    pub(super) bytes: u64,
}

/// An open database, or the memory that stands for one.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) connections: Connections,
    kind: DatabaseKind,
}

#[derive(Debug)]
enum DatabaseKind {
    Memory,
    File(FilesOnDisk),
    Server,
}

impl Database {
    /// Opens memory, which ends with the process.
    pub(super) fn in_memory(cache: usize) -> Result<Self, StoreError> {
        let connections = Connections::open_sqlite(&SqlitePlace::Memory, cache)?;
        schema::migrate(&connections)?;
        Ok(Self { connections, kind: DatabaseKind::Memory })
    }

    /// Opens a file that was made with its tables.
    pub(super) fn open_file(path: &Path, cache: usize) -> Result<Self, StoreError> {
        let metadata = examine_file(path)?;
        if log_scan::is_damaged(&log_of(path)?) {
            let reason = "its log (`-wal`) is damaged, and with it what was written after that";
            return Err(StoreError::new(StoreFault::Damaged, "opened", reason));
        }
        generation::check(path, metadata.ino())?;
        let connections = Connections::open_sqlite(&SqlitePlace::File(path.to_owned()), cache)?;
        if !schema::has_tables(&connections)? {
            let reason = "the file has no tables: it was emptied, or its log (`-wal`) is missing";
            return Err(StoreError::new(StoreFault::Damaged, "opened", reason));
        }
        schema::migrate(&connections)?;
        // A full disk can still be read.
        if !connections.read(async |connection| is_counted(connection).await)? {
            connections.write(async |connection| {
                recount(connection).await.map_err(connections.failed("opened"))
            })?;
        }
        let kind = DatabaseKind::File(FilesOnDisk::new(path)?);
        Ok(Self { connections, kind })
    }

    /// Makes the tables in an empty file, and closes it.
    pub(super) fn make_tables(path: &Path) -> Result<(), StoreError> {
        let connections = Connections::open_sqlite(&SqlitePlace::File(path.to_owned()), 0)?;
        schema::migrate(&connections)?;
        connections.close_now()
    }

    /// Connects to a server.
    pub(super) fn connect(url: &PostgresUrl) -> Result<Self, StoreError> {
        let connections = Connections::open_postgres(url)?;
        schema::migrate(&connections)?;
        Ok(Self { connections, kind: DatabaseKind::Server })
    }

    /// Returns whether what is written outlives the process.
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self.kind, DatabaseKind::Memory)
    }

    /// Returns whether this is a server, which may be gone.
    pub(super) fn is_server(&self) -> bool {
        matches!(self.kind, DatabaseKind::Server)
    }

    /// Returns whether this is a file.
    pub(super) fn has_file(&self) -> bool {
        self.files().is_some()
    }

    fn files(&self) -> Option<&FilesOnDisk> {
        match &self.kind {
            DatabaseKind::File(files) => Some(files),
            DatabaseKind::Memory | DatabaseKind::Server => None,
        }
    }

    /// Returns whether the file and its log are still those of their names, and whole: what is written to a file
    /// that was removed is gone at the next start.
    pub(super) fn is_in_place(&self) -> bool {
        self.files().is_none_or(|it| it.are_in_place(|| self.bytes()))
    }

    /// Returns whether the file that is open is still the one of its name.
    pub(super) fn has_name(&self) -> bool {
        self.files().is_none_or(FilesOnDisk::has_name)
    }

    /// Returns how many bytes the file has when nothing is left in its log.
    fn bytes(&self) -> Option<u64> {
        let bytes = self.connections.read(async |connection| {
            let product = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
            let row = Statement::new(product).first(connection).await?;
            row.as_ref().map(|it| integer(it, 0)).transpose()
        });
        u64::try_from(bytes.ok()??).ok()
    }

    /// Runs an operation in a transaction that writes. Some of them begin a generation, by which it shows whether the
    /// file lost something; [`Self::save_generation`] follows where nothing waits for it.
    pub(super) fn write_kept<T>(
        &self,
        operation: impl AsyncFnOnce(&mut AnyConnection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let due = self.files().and_then(|it| Some((it, it.next_generation()?)));
        let Some((files, begin)) = due else { return self.connections.write(operation) };
        let (number, done) = self.connections.write(async |connection| {
            let number = generation::advance(connection).await;
            let number = number.map_err(self.connections.failed("written"))?;
            Ok((number, operation(connection).await?))
        })?;
        files.note_generation(begin, number);
        Ok(done)
    }

    /// Notes beside the file what it has at least, where that is not noted.
    pub(super) fn save_generation(&self) {
        if let Some(files) = self.files() {
            files.save_generation();
        }
    }

    /// Moves the log into the file; returns whether nothing is left of it.
    pub(super) fn truncate_log(&self) -> Result<bool, StoreError> {
        if let Some(files) = self.files() {
            files.note_emptied_log();
        }
        self.connections.truncate_log()
    }

    /// Closes the database for good.
    pub(super) fn end(&self) {
        self.close();
        if let Some(files) = self.files() {
            files.remove_generation();
        }
    }

    /// Closes the database for all that read it.
    pub(super) fn close(&self) {
        self.connections.close();
    }

    /// Returns how much is kept.
    pub(super) fn size(&self) -> Result<Size, StoreError> {
        self.connections.read(async |connection| {
            let sums = Statement::new("SELECT nodes, bytes FROM totals WHERE id = 1");
            let Some(row) = sums.first(connection).await? else { return Ok(Size::default()) };
            let count = |it: i64| u64::try_from(it).unwrap_or_default();
            Ok(Size { nodes: count(integer(&row, 0)?), bytes: count(integer(&row, 1)?) })
        })
    }

    /// Finds out whether writing works: a few bytes may find room where a check-in does not.
    pub(super) fn probe(&self) -> Result<(), StoreError> {
        self.connections.write(async |connection| {
            let failed = self.connections.failed("written");
            let room = Statement::new("INSERT INTO path_sets (digest, paths)")
                .rows([vec![PROBE.to_vec().into(), " ".repeat(64 << 10).as_str().into()]])
                .text(" ON CONFLICT (digest) DO UPDATE SET paths = excluded.paths");
            room.execute(connection).await.map_err(&failed)?;
            let end = Statement::new("DELETE FROM path_sets WHERE digest = ").value(PROBE.to_vec());
            end.execute(connection).await.map(drop).map_err(&failed)
        })
    }

    /// Examines the whole file for damage. Takes as long as reading it does.
    pub(super) fn examine(&self) -> Result<(), StoreError> {
        // What is in memory has not been on a disk.
        if !self.has_file() {
            return Ok(());
        }
        let found = self.connections.examine(async |connection| {
            let check = Statement::new("PRAGMA quick_check(1)").first(connection).await?;
            check.as_ref().map(|it| super::sql::text(it, 0)).transpose()
        })?;
        match found.as_deref() {
            None | Some("ok") => Ok(()),
            Some(damage) => {
                Err(StoreError::new(StoreFault::Damaged, "read", damage.trim().to_owned()))
            }
        }
    }

    /// Writes all that is here to a file that does not exist.
    pub(super) fn copy_to(&self, path: &Path) -> Result<(), StoreError> {
        let path = path.to_str().ok_or_else(|| {
            StoreError::new(StoreFault::Io, "written", "the path of the file is not UTF-8")
        })?;
        self.connections.maintain(Statement::new("VACUUM INTO ").value(path))
    }
}

/// How many bytes the smallest database has; SQLite takes some smaller files for new ones.
const SMALLEST: u64 = 512;

/// Returns what is known of a file that SQLite is to open, without opening it: closing any descriptor of a file
/// drops the locks that this process has on it, and another one that reads the file then removes its log, with
/// all that is written there later.
fn examine_file(path: &Path) -> Result<Metadata, StoreError> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(std::io::Error::from(std::io::ErrorKind::IsADirectory).into());
    }
    let access = Access::READ_OK | Access::WRITE_OK;
    accessat(CWD, path, access, AtFlags::EACCESS).map_err(std::io::Error::from)?;
    if metadata.len() < SMALLEST {
        let reason = "the file is not a database of SQLite";
        return Err(StoreError::new(StoreFault::Damaged, "opened", reason));
    }
    Ok(metadata)
}
