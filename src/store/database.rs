//! An open database of check-ins: SQLite or PostgreSQL, with the same statements.

#![expect(clippy::disallowed_methods, reason = "this is where the file is opened")]

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Access, AtFlags, CWD, accessat};

use super::error::{StoreError, StoreFault};
use super::location::PostgresUrl;
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
    /// The file, and which one it was when it was opened.
    File(PathBuf, FileIdentity),
    Server,
}

/// The device and the inode of a file.
type FileIdentity = (u64, u64);

impl Database {
    /// Opens memory, which ends with the process.
    pub(super) fn in_memory(cache: usize) -> Result<Self, StoreError> {
        let connections = Connections::open_sqlite(&SqlitePlace::Memory, cache)?;
        schema::migrate(&connections)?;
        Ok(Self { connections, kind: DatabaseKind::Memory })
    }

    /// Opens a file, and makes it where there is none.
    pub(super) fn open_file(path: &Path, cache: usize) -> Result<Self, StoreError> {
        let is_new = !path.exists();
        if is_new {
            // Facts hold secrets: SQLite gives the files beside this one the same mode.
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        }
        let metadata = examine_file(path)?;
        let identity = identity(&metadata);
        let connections = Connections::open_sqlite(&SqlitePlace::File(path.to_owned()), cache)?;
        schema::migrate(&connections)?;
        // A full disk can still be read.
        if !connections.read(async |connection| is_counted(connection).await)? {
            connections.write(async |connection| {
                recount(connection).await.map_err(connections.failed("opened"))
            })?;
        }
        if let Some(directory) = path.parent().filter(|_| is_new) {
            // Else the name may be gone after a power failure, with all that was promised.
            File::open(directory)?.sync_all()?;
        }
        let kind = DatabaseKind::File(path.to_owned(), identity);
        Ok(Self { connections, kind })
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
        matches!(self.kind, DatabaseKind::File(..))
    }

    /// Returns whether the file that is open is still the one of its name: what is written to a file
    /// that was removed is gone at the next start.
    pub(super) fn is_in_place(&self) -> bool {
        let DatabaseKind::File(path, opened) = &self.kind else { return true };
        std::fs::metadata(path).is_ok_and(|it| identity(&it) == *opened)
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
        if !matches!(self.kind, DatabaseKind::File(..)) {
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

fn identity(metadata: &Metadata) -> FileIdentity {
    (metadata.dev(), metadata.ino())
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
    if (1..SMALLEST).contains(&metadata.len()) {
        let reason = "the file is not a database of SQLite";
        return Err(StoreError::new(StoreFault::Damaged, "opened", reason));
    }
    Ok(metadata)
}
