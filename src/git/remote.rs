//! Where groups come from, and what can go wrong on the way.

use std::fmt;
use std::path::{Path, PathBuf};

/// A place that a repository is fetched from.
#[derive(Clone, PartialEq, Eq)]
pub enum Remote {
    /// A directory of this machine.
    Path(PathBuf),
    /// A URL; credentials in it are never shown.
    Url(String),
}

/// A text names no place that a repository can be fetched from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// The transport is not there yet.
    #[error(
        "repositories over `{scheme}` are not supported yet: use a path, `file://` or `git://`"
    )]
    Unsupported {
        /// The scheme of the URL.
        scheme: String,
    },
    /// There is nothing.
    #[error("the address of the repository is empty")]
    Empty,
}

impl Remote {
    /// Reads a URL or path.
    ///
    /// # Errors
    ///
    /// Returns an error if the transport is not supported.
    pub fn parse(text: &str) -> Result<Self, RemoteError> {
        let unsupported = |scheme: &str| RemoteError::Unsupported { scheme: scheme.to_owned() };
        match text.split_once("://") {
            _ if text.trim().is_empty() => Err(RemoteError::Empty),
            Some(("file" | "git", _)) => Ok(Self::Url(text.to_owned())),
            Some((scheme, _)) => Err(unsupported(scheme)),
            None if is_scp(text) => Err(unsupported("ssh")),
            None => Ok(Self::Path(PathBuf::from(text))),
        }
    }

    /// Returns the path of a directory of this machine.
    pub fn as_path(&self) -> Option<&Path> {
        match self {
            Self::Path(path) => Some(path),
            Self::Url(_) => None,
        }
    }

    /// Returns what git is given.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Path(path) => path.to_string_lossy().into_owned(),
            Self::Url(url) => url.clone(),
        }
    }
}

/// Returns whether ssh is meant: `git@host:path`, but not a path that exists.
fn is_scp(text: &str) -> bool {
    let host = text.split_once(':').map(|(host, _)| host);
    host.is_some_and(|host| host.contains('@') && !host.contains('/'))
}

impl fmt::Display for Remote {
    /// Writes the address without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.display().fmt(f),
            Self::Url(url) => match url.split_once("://") {
                Some((scheme, rest)) => {
                    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
                    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
                    write!(f, "{scheme}://{host}/{path}")
                }
                None => f.write_str(url),
            },
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({self})")
    }
}

/// The remote could not be looked at or fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FetchError {
    /// What went wrong.
    pub failure: FetchFailure,
    /// One line for people.
    pub message: String,
}

/// What can go wrong between us and the remote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FetchFailure {
    /// There is no connection.
    ConnectFailed,
    /// The repository is not there.
    RepositoryNotFound,
    /// The branch is not there.
    RefNotFound,
    /// Something else.
    Other,
}

impl FetchFailure {
    /// Returns the reason as conditions show it.
    pub fn reason(self) -> &'static str {
        match self {
            Self::ConnectFailed => "ConnectFailed",
            Self::RepositoryNotFound => "RepositoryNotFound",
            Self::RefNotFound => "RefNotFound",
            Self::Other => "FetchFailed",
        }
    }
}

impl FetchError {
    pub(super) fn of(remote: &Remote, error: &git2::Error) -> Self {
        let failure = match (error.class(), error.code()) {
            (git2::ErrorClass::Net, _) => FetchFailure::ConnectFailed,
            (_, git2::ErrorCode::NotFound) => FetchFailure::RepositoryNotFound,
            _ => FetchFailure::Other,
        };
        Self { failure, message: format!("`{remote}` cannot be fetched: {}", error.message()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_never_shown() {
        for (text, shown) in [
            ("git://user:secret@host:9418/a/b.git", "git://host:9418/a/b.git"),
            ("file:///srv/groups.git", "file:///srv/groups.git"),
            ("/srv/groups.git", "/srv/groups.git"),
        ] {
            let remote = Remote::parse(text).unwrap();
            assert_eq!(remote.to_string(), shown);
            assert!(!format!("{remote:?}").contains("secret"));
        }
    }

    #[test]
    fn transports_that_are_not_there_are_named() {
        for (text, scheme) in
            [("https://host/x.git", "https"), ("ssh://host/x", "ssh"), ("git@host:x.git", "ssh")]
        {
            assert_eq!(
                Remote::parse(text),
                Err(RemoteError::Unsupported { scheme: scheme.into() })
            );
        }
        assert_eq!(Remote::parse(" "), Err(RemoteError::Empty));
    }
}
