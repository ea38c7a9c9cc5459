//! Opening regular files alone: a pipe in the place of one keeps its reader waiting.
#![expect(clippy::disallowed_methods, reason = "what git keeps are files")]

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// How many names are tried for an entry that is put aside.
const MOST_ASIDE: usize = 100;

/// The most bytes of a file of a few lines.
const FEW_LINES: u64 = 64 << 10;

/// Opens a regular file for reading.
///
/// # Errors
///
/// Returns an error if there is none, or it cannot be opened.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(path)
}

/// Reads a regular file of a few lines.
///
/// # Errors
///
/// As [`open_regular`], and if it cannot be read or is too large.
pub(super) fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    read_regular_within(path, FEW_LINES)
}

/// Reads a regular file of so many bytes at most.
///
/// # Errors
///
/// As [`read_regular`].
pub(super) fn read_regular_within(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Returns whether something else than a regular file has a name.
pub(super) fn is_irregular(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| !it.is_file())
}

/// Returns whether a name is that of a link that leads to nothing.
pub(super) fn is_dangling(path: &Path) -> bool {
    let is_absent = fs::metadata(path).is_err_and(|it| it.kind() == io::ErrorKind::NotFound);
    is_absent && fs::symlink_metadata(path).is_ok()
}

/// Returns whether a name is that of a pipe, a socket or a device: who opens one may wait for ever.
pub(super) fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| !it.is_file() && !it.is_dir())
}

/// Gives an entry a name with `.broken` at its end, where no other one has it, and returns that.
///
/// # Errors
///
/// Returns an error if it cannot be renamed.
pub(super) fn rename_broken(path: &Path) -> io::Result<PathBuf> {
    let named = |number: usize| {
        let mut name = path.as_os_str().to_owned();
        name.push(".broken");
        if number > 1 {
            name.push(format!("-{number}"));
        }
        PathBuf::from(name)
    };
    let free = (1..MOST_ASIDE).map(named).find(|it| fs::symlink_metadata(it).is_err());
    let aside = free.unwrap_or_else(|| named(MOST_ASIDE));
    fs::rename(path, &aside)?;
    Ok(aside)
}
