//! Reading and replacing files that are small, and that are files: who opens a pipe may wait for ever.
#![expect(clippy::disallowed_methods, reason = "settings and secrets are files")]

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
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

#[cfg(test)]
mod tests {
    use super::*;

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
