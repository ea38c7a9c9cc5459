//! Opening the file of check-ins, and putting aside one that cannot be used.

#![expect(clippy::disallowed_methods, reason = "this is where the file is renamed")]

use std::fs::{OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::beside::{beside, has_content};
use super::database::Database;
use super::error::{StoreError, StoreFault};
use super::generation;
use super::location::StoreLocation;
use super::settings::StoreSettings;
use crate::config::sync_directory;

/// What stands between the name of the file and the time when it was put aside.
const MARK: &str = ".damaged-";

/// What stands beside a file, and would be taken for that of another one in its place.
const LOGS: [&str; 2] = ["-wal", "-shm"];

/// Opens the database; a file that cannot be used is put aside, and an empty one takes its place.
pub(super) fn open(settings: &StoreSettings) -> Result<Database, StoreError> {
    match &settings.location {
        StoreLocation::Memory => Database::in_memory(settings.cache),
        StoreLocation::Postgres(url) => Database::connect(url),
        StoreLocation::Sqlite(path) => match open_or_make(path, settings.cache) {
            Err(error) if error.calls_for_a_new_file() => {
                if !settings.is_own_place && !generation::is_there(path) {
                    return Err(error.of_foreign(path));
                }
                put_aside(path, &error)?;
                open_or_make(path, settings.cache)
            }
            opened => opened,
        },
    }
}

fn open_or_make(path: &Path, cache: usize) -> Result<Database, StoreError> {
    let open = || {
        if !path.exists() {
            make(path)?;
        }
        check_beside(path)?;
        Database::open_file(path, cache)
    };
    open().map_err(|error: StoreError| error.of_file(path))
}

/// Checks that what stands beside the file, and what SQLite makes there, is a file.
fn check_beside(path: &Path) -> Result<(), StoreError> {
    // SQLite looks for them beside the file that a link leads to.
    let path = std::fs::canonicalize(path)?;
    let mut places = [LOGS[0], LOGS[1], "-journal"].map(|it| beside(&path, it)).into_iter();
    match places.find(|it| it.is_dir()) {
        None => Ok(()),
        Some(place) => {
            let reason = format!(
                "`{}` is a directory, where SQLite has a file: move it away",
                place.display()
            );
            Err(StoreError::new(StoreFault::Io, "opened", reason))
        }
    }
}

/// Makes a file with its tables under another name, and renames it: a file of the store that has none is damaged.
fn make(path: &Path) -> Result<(), StoreError> {
    if path.is_symlink() {
        // The disk with the file is away.
        return Err(io::Error::from(ErrorKind::AlreadyExists).into());
    }
    let new = remove_new(path);
    // Facts hold secrets: SQLite gives the files beside this one the same mode.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    Database::make_tables(&new)?;
    put_in_place(&new, path)
}

/// Returns the name under which the file is made, without what an interrupted attempt left.
fn remove_new(path: &Path) -> PathBuf {
    let new = beside(path, ".new");
    for it in LOGS.map(|it| beside(&new, it)).iter().chain([&new, &beside(&new, "-journal")]) {
        std::fs::remove_file(it).ok();
    }
    new
}

/// Renames a file that is closed to the name of the store.
fn put_in_place(new: &Path, path: &Path) -> Result<(), StoreError> {
    if has_content(&beside(new, "-wal")) {
        return Err(StoreError::new(StoreFault::Io, "written", "the new file cannot be closed"));
    }
    // The log is found by the name of the file, and must not be taken for that of the new one.
    for log in LOGS {
        std::fs::remove_file(beside(path, log)).ok();
    }
    generation::remove(path);
    std::fs::rename(new, path)?;
    // Else the name may be gone after a power failure, with all that was promised.
    Ok(sync_directory(path)?)
}

/// Opens the database; where the file does not exist, memory stands for it. A store that was never
/// written to has no file and no log, so that no damage can make it look like one that lost something.
pub(super) fn open_existing(settings: &StoreSettings) -> Result<Database, StoreError> {
    match settings.location.path() {
        Some(path) if matches!(path.try_exists(), Ok(false)) && !path.is_symlink() => {
            if has_content(&beside(path, "-wal")) {
                let reason = "the file is gone, and its log (`-wal`) is there";
                put_aside(path, &StoreError::new(StoreFault::Damaged, "opened", reason))?;
            }
            Database::in_memory(settings.cache)
        }
        _ => open(settings),
    }
}

/// Writes the content of an open database to its path, where the file or a part of it is gone. The database stays open: until it is
/// done, nothing else has that content.
pub(super) fn write_again(path: &Path, database: &Database) -> Result<(), StoreError> {
    let copy = remove_new(path);
    database.copy_to(&copy)?;
    std::fs::set_permissions(&copy, Permissions::from_mode(0o600))?;
    put_in_place(&copy, path)
}

/// Renames the file, so that it can be examined and none of it is lost.
pub(super) fn put_aside(path: &Path, error: &StoreError) -> Result<(), StoreError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let now = Timestamp::now().strftime("%Y%m%dT%H%M%S%3fZ");
    let aside = path.with_file_name(format!("{name}{MARK}{now}"));
    let moved = std::fs::rename(path, &aside).or_else(|failure| match failure.kind() {
        // What it held is lost all the same, and must not count as unknown.
        ErrorKind::NotFound => {
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside).map(drop)
        }
        _ => Err(failure),
    });
    moved.map_err(|failure| {
        let reason = format!("{error}, and the file cannot be put aside: {failure}");
        StoreError::new(StoreFault::Io, "opened", reason)
    })?;
    // The log holds the newest rows, and would be taken for that of the next file.
    for log in LOGS {
        std::fs::rename(beside(path, log), beside(&aside, log)).ok();
    }
    // Who puts the file back wants it as it is.
    generation::remove(path);
    tracing::error!(
        %error,
        path = %aside.display(),
        "the file of the check-ins is put aside; nodes that have not checked in with facts and trusted data since then get 503 where stored data are needed; to end this, remove that file; if there is a backup, stop the daemon and put it in the place of the file before"
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::database::StoreLimits;

    #[test]
    fn a_file_that_cannot_be_opened_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nodes.sqlite");
        make(&path).unwrap();
        for suffix in ["-wal", "-journal"] {
            let place = beside(&path, suffix);
            std::fs::create_dir(&place).unwrap();
            let error = open_or_make(&path, 0).unwrap_err();
            let expected = format!(
                "the check-ins cannot be opened: `{0}`: `{0}{suffix}` is a directory, where SQLite has a file: move it away",
                path.display()
            );
            assert_eq!((error.fault, error.to_string()), (StoreFault::Io, expected));
            std::fs::remove_dir(&place).unwrap();
        }
        open_or_make(&path, 0).unwrap().close();
    }

    #[test]
    fn what_may_be_of_others_stays_where_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("other");
        let limits = StoreLimits {
            nodes: 1,
            bytes: 1,
            forget_after: Duration::from_hours(1),
            history: Duration::from_hours(1),
        };
        let location = StoreLocation::Sqlite(path.clone());
        let settings =
            StoreSettings { location, is_own_place: false, former: None, cache: 0, limits };
        let refused = || {
            let error = open(&settings).map(|it| it.close()).unwrap_err();
            assert_eq!(error.fault, StoreFault::Io, "{error}");
            assert!(
                error.to_string().contains("not a file of check-ins that Clade wrote"),
                "{error}"
            );
            assert_eq!(find_put_aside(&path), None);
        };
        std::fs::create_dir(&path).unwrap();
        refused();
        std::fs::remove_dir(&path).unwrap();
        let text = b"setting: 1\n".repeat(100);
        std::fs::write(&path, &text).unwrap();
        refused();
        assert_eq!(std::fs::read(&path).unwrap(), text);
        // Where a store was written before, it is damaged.
        generation::save(&path, 1, 1).unwrap();
        open(&settings).unwrap().close();
        assert_eq!(std::fs::read(find_put_aside(&path).unwrap()).unwrap(), text);
    }
}
