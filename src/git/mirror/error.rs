//! Why a mirror cannot be opened.

use std::path::PathBuf;

use crate::git::repository::OpenError;

/// The mirror cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// Another process has it.
    #[error(
        "the data directory `{}` is in use by another process, perhaps another `clade serve`: stop it, or choose another directory with `--data-dir`",
        .0.display()
    )]
    Locked(PathBuf),
    /// The directory cannot be used.
    #[error("the data directory `{}` cannot be used", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The scheme of the URL is not allowed.
    #[error("repositories over `{0}://` are not allowed: they could be changed on the way")]
    SchemeNotAllowed(&'static str),
    /// The repository in it cannot be used.
    #[error(transparent)]
    Repository(#[from] OpenError),
}
