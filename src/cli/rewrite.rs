//! Writing files of users: the old text or the new one, and no part of either.
#![expect(clippy::disallowed_methods, reason = "the command line writes files of users")]

use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::Path;

use anyhow::{Context as _, Result};

/// Writes a file, with the permissions that it has. A disk that is full, or a kill, leaves what was there.
///
/// # Errors
///
/// Returns an error if it cannot be written.
pub(super) fn rewrite(path: &Path, text: &str) -> Result<()> {
    replace(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    // A link stays one.
    let path = match path.canonicalize() {
        Ok(path) => path,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return std::fs::write(path, text),
        Err(error) => return Err(error),
    };
    let found = std::fs::metadata(&path)?;
    let Some(directory) = path.parent().filter(|_| found.is_file()) else {
        return std::fs::write(&path, text);
    };
    if found.permissions().readonly() {
        // As if it were written in its place; the administrator may.
        drop(std::fs::OpenOptions::new().write(true).open(&path)?);
    }
    let new = tempfile::Builder::new()
        .prefix(".clade-")
        .permissions(found.permissions())
        .tempfile_in(directory);
    let mut new = match new {
        Ok(new) => new,
        // The file can be written though its directory cannot.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return std::fs::write(&path, text);
        }
        Err(error) => return Err(error),
    };
    if fchown(&new, Some(found.uid()), Some(found.gid())).is_err() {
        // It would be another user's from then on.
        return std::fs::write(&path, text);
    }
    new.write_all(text.as_bytes())?;
    new.as_file().set_permissions(found.permissions())?;
    // The directory is not synced: a power failure leaves the old text or the new one.
    new.as_file().sync_all()?;
    new.persist(&path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        rewrite(&at("file"), "one").unwrap();
        std::fs::set_permissions(at("file"), std::fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", at("link")).unwrap();
        let before = std::fs::File::open(at("file")).unwrap();
        rewrite(&at("link"), "two").unwrap();
        assert!(at("link").is_symlink());
        assert_eq!(std::fs::read_to_string(at("file")).unwrap(), "two");
        assert_eq!(at("file").metadata().unwrap().permissions().mode() & 0o777, 0o640);
        // What was open is as it was: nothing was written over it.
        assert_eq!(io::read_to_string(before).unwrap(), "one");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
        assert!(rewrite(&at("absent/file"), "three").is_err());
    }
}
