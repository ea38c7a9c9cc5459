//! Why a file of the cache or of Puppet Server is not used.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use thiserror::Error;

/// A file is not used.
#[derive(Debug, Error)]
pub(super) enum FileError {
    #[error(
        "`{}` belongs to user {owner}, and root uses no cache that another user can change: run as that user", path.display()
    )]
    Foreign { path: PathBuf, owner: u32 },
    #[error("`{}` belongs to user {owner}, not to user {us} that this runs as", path.display())]
    Planted { path: PathBuf, owner: u32, us: u32 },
    #[error("`{}` can be written by other users (mode {mode:o})", path.display())]
    Writable { path: PathBuf, mode: u32 },
    #[error("`{}` is not a regular file", .0.display())]
    NotAFile(PathBuf),
    #[error(
        "user {owner} can change where `{}` leads, and the file there belongs to another user: root does not read it, run as user {owner}", path.display()
    )]
    Led { path: PathBuf, owner: u32 },
    #[error("`{}` has too many symbolic links", .0.display())]
    Links(PathBuf),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl FileError {
    /// Returns whether nothing is there.
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

impl From<Errno> for FileError {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}
