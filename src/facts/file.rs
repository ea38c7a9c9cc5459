//! Files of facts.

#![expect(clippy::disallowed_methods, reason = "facts are files")]

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

/// The most bytes of a file of facts: as many as of a request that brings facts.
pub const FILE_BYTES: u64 = 16 << 20;

/// Reads a file of facts or trusted data.
///
/// # Errors
///
/// Returns an error if it cannot be read, or has more than [`FILE_BYTES`].
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    // Who opens a pipe may wait for ever; what a shell puts in the place of `<(command)` is written to.
    let is_of_system = ["/dev", "/proc"].iter().any(|it| path.starts_with(it));
    let found = std::fs::metadata(path)?;
    if !found.is_file() && !found.is_dir() && !is_of_system {
        return Err(Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    // A pipe or a device does not say how long it is.
    File::open(path)?.take(FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES { Err(too_long()) } else { Ok(bytes) }
}

/// Says that a file of facts has more than [`FILE_BYTES`].
pub fn too_long() -> Error {
    let message = format!("it has over {} MiB, the most that facts may have", FILE_BYTES >> 20);
    Error::new(ErrorKind::FileTooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("facts.json");
        let file = File::create(&path).unwrap();
        file.set_len(FILE_BYTES).unwrap();
        assert_eq!(read_file(&path).unwrap().len() as u64, FILE_BYTES);
        file.set_len(1 << 40).unwrap();
        let error = read_file(&path).unwrap_err();
        assert_eq!(error.to_string(), "it has over 16 MiB, the most that facts may have");
        assert!(read_file(Path::new("/dev/zero")).is_err());
    }

    #[test]
    fn a_pipe_beside_facts_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("facts.json");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let error = read_file(&path).unwrap_err();
        assert_eq!(error.to_string(), "it is not a regular file");
        assert_eq!(read_file(Path::new("/dev/null")).unwrap(), b"");
    }
}
