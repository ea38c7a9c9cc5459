//! Opening the file of check-ins, and putting aside one that cannot be used.

#![expect(clippy::disallowed_methods, reason = "this is where the file is renamed")]

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::database::Database;
use super::error::{StoreError, StoreFault};

/// What stands between the name of the file and the time when it was put aside.
const MARK: &str = ".damaged-";

/// Opens the file; one that cannot be used is put aside, and an empty one takes its place.
pub(super) fn open(path: Option<&Path>, cache: usize) -> Result<Database, StoreError> {
    match (Database::open(path, cache), path) {
        (Err(error), Some(path)) if error.calls_for_a_new_file() => {
            put_aside(path, &error)?;
            Database::open(Some(path), cache)
        }
        (opened, _) => opened,
    }
}

/// Opens the file if there is one, else empty memory: a store that was never written to has no file,
/// so that no damage can make it look like one that lost something.
pub(super) fn open_existing(path: Option<&Path>, cache: usize) -> Result<Database, StoreError> {
    match path {
        Some(path) if matches!(path.try_exists(), Ok(false)) && !path.is_symlink() => {
            Database::open(None, cache)
        }
        _ => open(path, cache),
    }
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
        .filter(|it| it.file_name().is_some_and(|it| it.to_string_lossy().starts_with(&start)))
        .collect();
    found.sort();
    found.pop()
}
