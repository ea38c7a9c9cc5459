//! Files beside that of the store.

use std::io;
use std::path::{Path, PathBuf};

/// Returns the path of a file whose name is longer.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Returns where the log of a file is that exists: beside the one that a link leads to.
pub(super) fn log_of(path: &Path) -> io::Result<PathBuf> {
    Ok(beside(&std::fs::canonicalize(path)?, "-wal"))
}

/// Returns whether a file is there, and not empty.
pub(super) fn has_content(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|it| it.len() > 0)
}
