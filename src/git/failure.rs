//! What can go wrong between us and a remote.

use std::fmt::Display;
use std::io;
use std::path::Path;

use git2::{ErrorClass, ErrorCode};

use super::remote::Remote;

/// A fetch failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FetchError {
    /// What went wrong.
    pub failure: FetchFailure,
    /// One line for people, without credentials.
    pub message: String,
}

/// What can go wrong between us and the remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FetchFailure {
    /// The remote does not accept who we are.
    AuthenticationFailed,
    /// Its host key is not the known one, or none is known.
    HostKeyMismatch,
    /// Its certificate is not one to trust, or there is no TLS.
    TlsFailed,
    /// Its name is not known.
    DnsFailed,
    /// There is no connection, or it broke.
    ConnectFailed,
    /// The deadline passed.
    Timeout,
    /// The repository is not there.
    RepositoryNotFound,
    /// The remote redirects to another host, or to something else than a repository.
    RedirectRefused,
    /// The ref is not there.
    RefNotFound,
    /// The ref names no commit, or its name cannot be kept.
    UnusableRef,
    /// The remote is a shallow clone.
    ShallowRemote,
    /// There is more than we take.
    LimitExceeded,
    /// Objects are damaged or missing, in the mirror or at the remote.
    CorruptObjects,
    /// What the remote sends is not git's protocol, or arrives damaged.
    MalformedResponse,
    /// The disk of the mirror is full.
    DiskFull,
    /// Another process holds a lock in the mirror.
    LockHeld,
    /// The remote shows an older commit than it has, as a replica that lags.
    OlderThanLive,
    /// A setting cannot be used, such as a file of a password.
    InvalidSettings,
    /// Something else, such as an error of the server.
    Other,
}

impl FetchFailure {
    /// Returns what an error of a file comes to: a limit of the size of files (`ulimit -f`) is a full disk as well.
    pub(super) fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => Self::DiskFull,
            _ => Self::Other,
        }
    }

    /// Returns the reason as conditions show it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::AuthenticationFailed => "AuthenticationFailed",
            Self::HostKeyMismatch => "HostKeyMismatch",
            Self::TlsFailed => "TlsFailed",
            Self::DnsFailed => "DnsFailed",
            Self::ConnectFailed => "ConnectFailed",
            Self::Timeout => "Timeout",
            Self::RepositoryNotFound => "RepositoryNotFound",
            Self::RedirectRefused => "RedirectRefused",
            Self::RefNotFound => "RefNotFound",
            Self::UnusableRef => "UnusableRef",
            Self::ShallowRemote => "ShallowRemote",
            Self::LimitExceeded => "LimitExceeded",
            Self::CorruptObjects => "CorruptObjects",
            Self::DiskFull => "DiskFull",
            Self::LockHeld => "LockHeld",
            Self::OlderThanLive => "OlderThanLive",
            Self::InvalidSettings => "InvalidSettings",
            Self::MalformedResponse | Self::Other => "FetchFailed",
        }
    }
}

impl FetchError {
    pub(super) fn new(failure: FetchFailure, message: impl Into<String>) -> Self {
        // The text crosses C on its way up: no NUL.
        Self { failure, message: message.into().replace('\0', "\u{fffd}") }
    }

    /// An error of a remote: `` `URL` cannot be fetched: detail ``.
    pub(super) fn at(remote: &Remote, failure: FetchFailure, detail: impl Display) -> Self {
        Self::new(failure, format!("`{remote}` cannot be fetched: {detail}"))
    }

    /// An error of a file: `` `PATH` cannot be written: error ``, after what could not be done.
    pub(super) fn of_file(path: &Path, undone: &str, error: &io::Error) -> Self {
        let failure = FetchFailure::of_io(error);
        Self::new(failure, format!("`{}` cannot be {undone}: {error}", path.display()))
    }

    /// An error of a push: `` `URL` cannot be pushed to: detail ``.
    pub(super) fn of_push(remote: &Remote, failure: FetchFailure, detail: impl Display) -> Self {
        Self::new(failure, format!("`{remote}` cannot be pushed to: {detail}"))
    }
}

/// How the system names limits of what a user may write (`EDQUOT`, also as musl has it, and `EFBIG`). libgit2 keeps no number
/// of what the system said, only its words.
const LIMITS: [&str; 3] = ["Disk quota exceeded", "Quota exceeded", "File too large"];

/// Tells an error of libgit2 apart.
pub(super) fn failure_of(error: &git2::Error) -> FetchFailure {
    let message = error.message();
    match (error.class(), error.code()) {
        _ if message.contains("No space left on device") => FetchFailure::DiskFull,
        (ErrorClass::Os, _) if LIMITS.iter().any(|it| message.ends_with(it)) => {
            FetchFailure::DiskFull
        }
        (_, ErrorCode::Locked) => FetchFailure::LockHeld,
        // The code is lost where libgit2 updates several refs.
        _ if message.starts_with("failed to lock file") => FetchFailure::LockHeld,
        // What `git daemon` and the servers of forges say of a repository that is not there.
        (ErrorClass::Net, _)
            if ["not exported", "not found", "no such repository"]
                .iter()
                .any(|it| message.to_lowercase().contains(it)) =>
        {
            FetchFailure::RepositoryNotFound
        }
        (ErrorClass::Net, _) => FetchFailure::ConnectFailed,
        (ErrorClass::Repository | ErrorClass::Os, ErrorCode::NotFound) => {
            FetchFailure::RepositoryNotFound
        }
        (
            ErrorClass::Odb
            | ErrorClass::Indexer
            | ErrorClass::Zlib
            | ErrorClass::Object
            | ErrorClass::Tree
            | ErrorClass::Tag
            | ErrorClass::Sha1,
            _,
        ) => FetchFailure::CorruptObjects,
        _ => FetchFailure::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_what_can_be_written_is_a_full_disk() {
        for (kind, expected) in [
            (io::ErrorKind::StorageFull, FetchFailure::DiskFull),
            (io::ErrorKind::QuotaExceeded, FetchFailure::DiskFull),
            (io::ErrorKind::FileTooLarge, FetchFailure::DiskFull),
            (io::ErrorKind::PermissionDenied, FetchFailure::Other),
        ] {
            let error = FetchError::of_file(Path::new("x"), "written", &kind.into());
            assert_eq!(error.failure, expected, "{kind}");
        }
    }

    #[test]
    fn errors_of_libgit2_are_told_apart() {
        for (code, class, message, expected) in [
            (
                ErrorCode::GenericError,
                ErrorClass::Os,
                "failed to write: No space left on device",
                FetchFailure::DiskFull,
            ),
            (
                ErrorCode::GenericError,
                ErrorClass::Os,
                "failed to write: Disk quota exceeded",
                FetchFailure::DiskFull,
            ),
            (
                ErrorCode::GenericError,
                ErrorClass::Os,
                "failed to write: File too large",
                FetchFailure::DiskFull,
            ),
            (
                ErrorCode::GenericError,
                ErrorClass::Net,
                "remote error: File too large",
                FetchFailure::ConnectFailed,
            ),
            (ErrorCode::Locked, ErrorClass::Os, "busy", FetchFailure::LockHeld),
            (
                ErrorCode::GenericError,
                ErrorClass::Os,
                "failed to lock file 'x' for writing: ",
                FetchFailure::LockHeld,
            ),
            (
                ErrorCode::GenericError,
                ErrorClass::Net,
                "remote error: access denied or repository not exported: /x",
                FetchFailure::RepositoryNotFound,
            ),
            (ErrorCode::Eof, ErrorClass::Net, "early EOF", FetchFailure::ConnectFailed),
            (
                ErrorCode::NotFound,
                ErrorClass::Odb,
                "object not found",
                FetchFailure::CorruptObjects,
            ),
            (
                ErrorCode::NotFound,
                ErrorClass::Repository,
                "could not find repository",
                FetchFailure::RepositoryNotFound,
            ),
            (ErrorCode::GenericError, ErrorClass::Config, "bad", FetchFailure::Other),
        ] {
            let error = git2::Error::new(code, class, message);
            assert_eq!(failure_of(&error), expected, "{message}");
        }
    }
}
