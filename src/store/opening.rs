//! Opening the file of check-ins, and putting aside one that cannot be used.

#![expect(clippy::disallowed_methods, reason = "this is where the file is renamed")]

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::database::Database;
use super::error::{StoreError, StoreFault};
use super::location::StoreLocation;
use super::settings::StoreSettings;

/// What stands between the name of the file and the time when it was put aside.
const MARK: &str = ".damaged-";

/// Opens the database; a file that cannot be used is put aside, and an empty one takes its place.
pub(super) fn open(settings: &StoreSettings) -> Result<Database, StoreError> {
    match &settings.location {
        StoreLocation::Memory => Database::in_memory(settings.cache),
        StoreLocation::Postgres(url) => Database::connect(url),
        StoreLocation::Sqlite(path) => match Database::open_file(path, settings.cache) {
            Err(error) if error.calls_for_a_new_file() => {
                put_aside(path, &error)?;
                Database::open_file(path, settings.cache)
            }
            opened => opened,
        },
    }
}

/// Opens the database; where the file does not exist, memory stands for it. A store that was never
/// written to has no file, so that no damage can make it look like one that lost something.
pub(super) fn open_existing(settings: &StoreSettings) -> Result<Database, StoreError> {
    match settings.location.path() {
        Some(path) if matches!(path.try_exists(), Ok(false)) && !path.is_symlink() => {
            Database::in_memory(settings.cache)
        }
        _ => open(settings),
    }
}

/// Writes the content of an open database to its path, where the file is gone. The database stays open: until it is
/// done, nothing else has that content.
pub(super) fn write_again(path: &Path, database: &Database) -> Result<(), StoreError> {
    let copy = beside(path, ".new");
    // One that an interrupted attempt left.
    std::fs::remove_file(&copy).ok();
    database.copy_to(&copy)?;
    std::fs::set_permissions(&copy, Permissions::from_mode(0o600))?;
    // The log is found by the name of the file, and must not be taken for that of the new one.
    for log in ["-wal", "-shm"] {
        std::fs::remove_file(beside(path, log)).ok();
    }
    std::fs::rename(&copy, path)?;
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// Returns the path of a file whose name is longer.
fn beside(path: &Path, log: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(log);
    name.into()
}

/// Renames the file, so that it can be examined and none of it is lost.
pub(super) fn put_aside(path: &Path, error: &StoreError) -> Result<(), StoreError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let now = Timestamp::now().strftime("%Y%m%dT%H%M%S%3fZ");
    let aside = path.with_file_name(format!("{name}{MARK}{now}"));
    std::fs::rename(path, &aside).map_err(|failure| {
        let reason = format!("{error}, and the file cannot be put aside: {failure}");
        StoreError::new(StoreFault::Io, "opened", reason)
    })?;
    // The log holds the newest rows, and would be taken for that of the next file.
    for log in ["-wal", "-shm"] {
        std::fs::rename(beside(path, log), beside(&aside, log)).ok();
    }
    tracing::error!(
        %error,
        path = %aside.display(),
        "the file of the check-ins is put aside; nodes that have not checked in with facts and trusted data since then get 503 where stored data are needed; to end this, remove that file, or stop the daemon and put a backup in the place of the file"
    );
    Ok(())
}

/// Returns a file that was put aside and is still there.
pub(super) fn find_put_aside(path: &Path) -> Option<PathBuf> {
    let start = format!("{}{MARK}", path.file_name()?.to_string_lossy());
    let mut found: Vec<PathBuf> = std::fs::read_dir(path.parent()?)
        .ok()?
        .filter_map(|it| Some(it.ok()?.path()))
        .filter(|it| {
            it.file_name().is_some_and(|it| {
                let name = it.to_string_lossy();
                name.starts_with(&start) && !name.ends_with("-wal") && !name.ends_with("-shm")
            })
        })
        .collect();
    found.sort();
    found.pop()
}

/// Returns a damaged file that was put aside and is still there: this store's, or that of a former version.
pub(super) fn find_put_aside_of(settings: &StoreSettings) -> Option<PathBuf> {
    let found = settings.location.path().and_then(find_put_aside);
    found.or_else(|| settings.former.as_deref().and_then(find_put_aside))
}
