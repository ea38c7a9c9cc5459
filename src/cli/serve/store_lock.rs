//! Keeps two daemons from one file of nodes: each would answer from what it knows alone.

use std::fs::TryLockError;
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::arguments::ServeSettings;
use super::controller::file_of_data_directory;
use crate::config::{FileLock, create_private_file};
use crate::store::StoreLocation;

/// Locks the file of `--store` as long as the result lives, by a file beside it; that of the data directory is locked with
/// the directory.
///
/// # Errors
///
/// Returns an error if another process has it. Where no lock can be made, such as in a directory that is read-only, there
/// is none: the store says what is wrong with it.
pub(super) fn lock_store(serve: &ServeSettings) -> Result<Option<FileLock>> {
    note_unused(serve);
    let Some(StoreLocation::Sqlite(path)) = &serve.store else { return Ok(None) };
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let beside = PathBuf::from(beside);
    let error = match create_private_file(&beside) {
        Ok(file) => match FileLock::take(file) {
            Ok(lock) => return Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => bail!(
                "the store `{}` is in use by another process: give each daemon a file of its own, or all of them `--store postgres://…`",
                path.display()
            ),
            Err(TryLockError::Error(error)) => error,
        },
        Err(error) => error,
    };
    tracing::warn!(path = %beside.display(), %error, "the store is not locked: no other daemon may use it");
    Ok(None)
}

/// Says that a file of nodes is left from before `--store` was set: what is deleted from the store stays in it.
fn note_unused(serve: &ServeSettings) {
    let (Some(store), Some(file)) = (&serve.store, file_of_data_directory(serve)) else { return };
    if *store != StoreLocation::Sqlite(file.clone()) && file.exists() {
        tracing::warn!(
            path = %file.display(),
            "this file of nodes is not used, since `--store` is set: remove it when the store has what you need, because nodes that are deleted from the store stay in it"
        );
    }
}
