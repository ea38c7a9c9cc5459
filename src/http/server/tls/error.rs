//! Why TLS cannot be set up.

use std::path::{Path, PathBuf};

/// TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used.
    #[error("`{}` cannot be used: {reason}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The key is not that of the certificate.
    #[error(
        "the certificate in `{}` and the private key in `{}` cannot be used together: {reason}",
        .certificate.display(),
        .key.display()
    )]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why.
        reason: String,
    },
}

/// Says of an error that it is about a file.
pub(super) fn file_error<E: std::fmt::Display>(path: &Path) -> impl Fn(E) -> TlsError + '_ {
    move |error| TlsError::File { path: path.to_owned(), reason: error.to_string() }
}
