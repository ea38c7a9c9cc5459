//! Reading and replacing files that are small, and that are files: who opens a pipe may wait for ever.
#![expect(clippy::disallowed_methods, reason = "settings and secrets are files")]

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The largest file that is read of those that people write.
const MOST: u64 = 16 << 20;

/// Reads a regular file of at most 16 MiB.
///
/// # Errors
///
/// As [`read_at_most`].
pub fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    read_at_most(path, MOST)
}

/// Reads a regular file of at most so many bytes, or a pipe that a shell names.
///
/// # Errors
///
/// Returns an error if it is something else or larger, or cannot be read.
pub fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let found = std::fs::metadata(path)?;
    if found.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !found.is_file() && !is_of_shell(path) {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it has more than {most} bytes")));
    }
    Ok(bytes)
}

/// Returns whether a path is what a shell puts in the place of `<(command)`, a pipe that something is written to, or a
/// file that this process has open.
fn is_of_shell(path: &Path) -> bool {
    let is_open = |it: &Path| it.starts_with("/dev/fd") || it.starts_with("/proc/self/fd");
    is_open(path) || path == Path::new("/dev/stdin") || path == Path::new("/dev/null")
}

/// Reads a regular file of at most 16 MiB as text.
///
/// # Errors
///
/// As [`read_bounded`], and if it is not text.
pub fn read_bounded_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_bounded(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Creates a file that its owner alone can read, or empties it.
///
/// # Errors
///
/// Returns an error if something else stands there, or it cannot be opened.
pub fn create_private_file(path: &Path) -> io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|it| !it.is_file()) {
        let message = format!("`{}` is not a regular file: remove it", path.display());
        return Err(io::Error::other(message));
    }
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// What a power failure may leave of a file that was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The new file, whole.
    Synced,
    /// Maybe an empty one or a part: its reader can do without it.
    Unsynced,
}

/// Puts a file that its owner alone can read in the place of another: a kill or a full disk leaves the old one or the
/// new one. It is written as `NAME.new` first.
///
/// # Errors
///
/// Returns an error if it cannot be written, synced or renamed.
pub fn replace_file(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let new = path.with_extension("new");
    create_private_file(&new)?.write_all(bytes)?;
    match durability {
        Durability::Synced => replace_with(path, &new),
        Durability::Unsynced => std::fs::rename(&new, path),
    }
}

/// Gives a new file the name of another. When this returns, a power failure leaves the new one, whole.
///
/// # Errors
///
/// Returns an error if it cannot be synced or renamed.
pub fn replace_with(path: &Path, new: &Path) -> io::Result<()> {
    File::open(new)?.sync_all()?;
    std::fs::rename(new, path)?;
    sync_directory(path)
}

/// Writes to disk which files the directory of a file has. Some file systems cannot sync directories: that is not an error.
///
/// # Errors
///
/// Returns an error if the directory cannot be opened or synced.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|it| !it.as_os_str().is_empty());
    match File::open(directory.unwrap_or(Path::new(".")))?.sync_all() {
        Err(error) if is_sync_unsupported(&error) => Ok(()),
        synced => synced,
    }
}

/// Returns whether a file system cannot sync what it was asked to sync.
pub fn is_sync_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_private() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for (durability, text) in
            [(Durability::Synced, "a longer text"), (Durability::Unsynced, "b")]
        {
            std::fs::write(path.with_extension("new"), "what a kill left, longer than all others")
                .unwrap();
            std::fs::set_permissions(
                path.with_extension("new"),
                std::fs::Permissions::from_mode(0o600),
            )
            .unwrap();
            let before = File::open(&path);
            replace_file(&path, text.as_bytes(), durability).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            if let Ok(before) = before {
                assert_eq!(io::read_to_string(before).unwrap(), "a longer text");
            }
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
            assert!(replace_file(&path.join("b"), b"", durability).is_err());
        }
        sync_directory(Path::new("Cargo.toml")).unwrap();
        assert!(sync_directory(&directory.path().join("absent/file")).is_err());
    }

    #[test]
    fn only_a_regular_file_is_read_and_not_more_than_the_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("text"), "a").unwrap();
        std::fs::write(path("bytes"), [0xff]).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), 0o600.into()).unwrap();
        drop(std::os::unix::net::UnixListener::bind(path("socket")).unwrap());
        std::os::unix::fs::symlink("none", path("dangling")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("device")).unwrap();
        File::create(path("large")).unwrap().set_len(10 << 30).unwrap();
        assert_eq!(read_bounded_text(&path("text")).unwrap(), "a");
        let error = |name: &str| read_bounded_text(&path(name)).unwrap_err().to_string();
        for name in ["pipe", "socket", "device"] {
            assert_eq!(error(name), "it is not a regular file", "{name}");
        }
        assert_eq!(error("large"), "it has more than 16777216 bytes");
        assert_eq!(error("bytes"), "it is not UTF-8");
        assert!(error("dangling").starts_with("No such file"));
        assert_eq!(read_bounded(Path::new("/dev/null")).unwrap(), b"");
        // As a shell names what `<(command)` writes.
        let (from, mut to) = io::pipe().unwrap();
        io::Write::write_all(&mut to, b"piped").unwrap();
        drop(to);
        let named = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&from));
        assert_eq!(read_bounded_text(Path::new(&named)).unwrap(), "piped");
        let of_directory = read_bounded(directory.path()).unwrap_err();
        assert_eq!(of_directory.kind(), io::ErrorKind::IsADirectory);
    }
}
