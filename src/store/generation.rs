//! How a file shows that it lost what was written last.
//!
//! SQLite takes a log that is missing, cut off or damaged for one that ends there: it opens the file without an
//! error, as it was before. So writes count a number up in the database, and a file beside it has that number: a database
//! with a smaller one lost writes that were acknowledged. Where the two are written does not matter: a process that is killed between them
//! leaves a database with a larger number.

#![expect(clippy::disallowed_methods, reason = "this is where the file is")]

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use sqlx::AnyConnection;

use super::beside::beside;
use super::error::{StoreError, StoreFault};
use super::sql::{Statement, integer, read_generation};
use crate::config::sync_directory;

/// What the name of the file ends with.
const SUFFIX: &str = "-generation";

/// How many bytes the file has: always the same, so that writing it needs no other file.
const BYTES: usize = 20 + 1 + 10 + 1;

/// The largest number that SQLite keeps for it.
const LARGEST: i64 = i32::MAX as i64;

fn place(path: &Path) -> PathBuf {
    beside(path, SUFFIX)
}

/// Counts the number in a database up, in the transaction that runs; returns it.
pub(super) async fn advance(connection: &mut AnyConnection) -> Result<i64, sqlx::Error> {
    let row = Statement::new("PRAGMA user_version").first(connection).await?;
    let number = row.as_ref().map_or(Ok(0), |it| integer(it, 0))?;
    let next = number.clamp(0, LARGEST - 1) + 1;
    Statement::pragma("user_version", next).execute(connection).await?;
    Ok(next)
}

/// Writes the number that a database has on disk to the file beside it. `inode` is that of the database: a
/// backup in its place may have a smaller number.
pub(super) fn save(path: &Path, inode: u64, number: i64) -> io::Result<()> {
    let place = place(path);
    let is_new = !place.exists();
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&place)?;
    file.write_all(format!("{inode:020} {number:010}\n").as_bytes())?;
    file.sync_data()?;
    if is_new { sync_directory(path) } else { Ok(()) }
}

/// Returns whether the file is there: a store was written to its database.
pub(super) fn is_there(path: &Path) -> bool {
    place(path).exists()
}

/// Removes the file: the database has all that was written.
pub(super) fn remove(path: &Path) {
    std::fs::remove_file(place(path)).ok();
}

/// Returns the inode and the number in the file.
fn read(path: &Path) -> Option<(u64, i64)> {
    let place = place(path);
    let metadata = std::fs::metadata(&place).ok()?;
    if !metadata.is_file() || metadata.len() != BYTES as u64 {
        return None;
    }
    let text = std::fs::read_to_string(place).ok()?;
    let (inode, number) = text.strip_suffix('\n')?.split_once(' ')?;
    Some((inode.parse().ok()?, number.parse().ok()?))
}

/// Returns an error if a database that is not open lacks what was written last.
pub(super) fn check(path: &Path, inode: u64) -> Result<(), StoreError> {
    let Some((_, expected)) = read(path).filter(|(of, _)| *of == inode) else { return Ok(()) };
    match read_generation(path) {
        Ok(number) if number < expected => Err(StoreError::new(
            StoreFault::Damaged,
            "opened",
            "its log (`-wal`) is missing or damaged, and with it what was written last",
        )),
        Err(error) if error.calls_for_a_new_file() => Err(error),
        // Opening it for writing shows what is wrong with it.
        Ok(_) | Err(_) => Ok(()),
    }
}
