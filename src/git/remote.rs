//! Where groups come from.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use percent_encoding::{percent_decode_str, percent_encode};

use crate::model::URL_PATH;

/// A place that a repository is fetched from: a directory or a URL.
///
/// Credentials in a URL are kept apart and shown by neither `Display` nor `Debug`.
///
/// ```
/// use clade::internals::git::Remote;
///
/// let remote = Remote::parse("https://ci:secret@git.example.com/groups.git")?;
/// assert_eq!(remote.to_string(), "https://git.example.com/groups.git");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Remote(Place);

#[derive(Clone, PartialEq, Eq)]
enum Place {
    Path(PathBuf),
    Url(Url),
}

/// The scheme of a URL that can be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// A directory of this machine.
    File,
    /// The daemon of git: neither secret nor authentic.
    Git,
    /// HTTP in the clear: neither secret nor authentic.
    Http,
    /// HTTP over TLS.
    Https,
    /// SSH.
    Ssh,
}

/// A URL in its parts.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) scheme: Scheme,
    /// User and password, decoded.
    pub(super) user: Option<(String, String)>,
    /// Host and port as written, in lower case; empty for a file.
    pub(super) authority: String,
    /// From the first `/` on.
    pub(super) path: String,
    /// Whether the path begins at the home of the user, as in `git@host:path`.
    pub(super) from_home: bool,
    /// Whether it was written as `git@host:path`, where nothing is percent-encoded.
    pub(super) is_scp: bool,
}

/// A text names no place that a repository can be fetched from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// There is no such transport.
    #[error("repositories over `{scheme}` are not supported: use `https://`, `ssh://` or a path")]
    Unsupported {
        /// The scheme of the URL.
        scheme: String,
    },
    /// The URL lacks a part, or has one too many.
    #[error("the address of the repository is not a URL to fetch from: it {0}")]
    Malformed(&'static str),
    /// There is nothing.
    #[error("the address of the repository is empty")]
    Empty,
}

impl Remote {
    /// Reads a URL or path.
    ///
    /// # Errors
    ///
    /// Returns an error if the transport is not supported or the URL is malformed; the message
    /// repeats nothing of the URL but its scheme.
    pub fn parse(text: &str) -> Result<Self, RemoteError> {
        let unsupported = |scheme: &str| RemoteError::Unsupported { scheme: scheme.to_owned() };
        match text.split_once("://") {
            _ if text.trim().is_empty() => Err(RemoteError::Empty),
            Some((scheme, rest)) if is_scheme(scheme) => {
                let known = Scheme::of(scheme).ok_or_else(|| unsupported(scheme))?;
                Url::parse(known, rest).map(|url| Self(Place::Url(url)))
            }
            _ if is_scp(text) => Url::parse_scp(text).map(|url| Self(Place::Url(url))),
            _ => Ok(Self(Place::Path(PathBuf::from(text)))),
        }
    }

    /// Returns the remote of a path, whatever characters are in it.
    pub(super) fn at_path(path: &Path) -> Self {
        Self(Place::Path(path.to_owned()))
    }

    /// Returns the path of a directory of this machine; a `file://` URL is none.
    pub fn as_path(&self) -> Option<&Path> {
        match &self.0 {
            Place::Path(path) => Some(path),
            Place::Url(_) => None,
        }
    }

    /// Returns the directory of a repository on this machine, which a path or a `file://` URL names.
    pub fn directory(&self) -> Option<PathBuf> {
        match &self.0 {
            Place::Path(path) => Some(std::path::absolute(path).unwrap_or_else(|_| path.clone())),
            Place::Url(Url { scheme: Scheme::File, path, .. }) => {
                let path = percent_decode_str(path).collect::<Vec<u8>>();
                Some(OsString::from_vec(path).into())
            }
            Place::Url(_) => None,
        }
    }

    /// Writes another directory of this machine in the same way: as a path or as a `file://` URL.
    pub fn at(&self, directory: &Path) -> String {
        match &self.0 {
            Place::Path(_) => directory.display().to_string(),
            Place::Url(_) => {
                format!("file://{}", percent_encode(directory.as_os_str().as_bytes(), URL_PATH))
            }
        }
    }

    /// Returns the scheme of a URL.
    pub fn scheme(&self) -> Option<Scheme> {
        self.url().map(|url| url.scheme)
    }

    /// Returns the host of a URL, without a port.
    pub fn host(&self) -> Option<&str> {
        let authority = &self.url()?.authority;
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|it| it.is_ascii_digit()) => host,
            _ => authority,
        };
        Some(host).filter(|it| !it.is_empty())
    }

    /// Returns the host of a URL with its port, if it has one, and without a user.
    pub fn authority(&self) -> Option<&str> {
        self.url().map(|it| it.authority.as_str()).filter(|it| !it.is_empty())
    }

    /// Returns the path of a URL, from its first `/` on.
    pub fn url_path(&self) -> Option<&str> {
        self.url().map(|it| it.path.as_str())
    }

    pub(super) fn url(&self) -> Option<&Url> {
        match &self.0 {
            Place::Path(_) => None,
            Place::Url(url) => Some(url),
        }
    }

    /// Returns what libgit2 is given: without credentials, and a path never looks like a URL.
    pub(super) fn address(&self) -> String {
        match &self.0 {
            Place::Path(path) => {
                std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string()
            }
            Place::Url(url) => url.to_string(),
        }
    }
}

impl Scheme {
    /// Returns the scheme as URLs have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Git => "git",
            Self::Http => "http",
            Self::Https => "https",
            Self::Ssh => "ssh",
        }
    }

    fn of(text: &str) -> Option<Self> {
        [Self::File, Self::Git, Self::Http, Self::Https, Self::Ssh]
            .into_iter()
            .find(|it| it.as_str().eq_ignore_ascii_case(text))
    }
}

impl Url {
    /// Reads what comes after `://`.
    pub(super) fn parse(scheme: Scheme, rest: &str) -> Result<Self, RemoteError> {
        if rest.chars().any(|it| it.is_control() || it == ' ') {
            return Err(RemoteError::Malformed("has a blank or control character in it"));
        }
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if scheme != Scheme::File {
            check_encoding(rest, path)?;
        }
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, authority),
        };
        if path.len() < 2 {
            return Err(RemoteError::Malformed("has no path"));
        }
        match (scheme, host) {
            (Scheme::File, "" | "localhost") => {}
            (Scheme::File, _) => return Err(RemoteError::Malformed("names a host for a file")),
            (_, host) if host.is_empty() || host.starts_with(':') => {
                return Err(RemoteError::Malformed("has no host"));
            }
            _ => {}
        }
        if !has_valid_port(host) {
            return Err(RemoteError::Malformed("has a port that is not a number"));
        }
        let user = user.map(|it| it.split_once(':').unwrap_or((it, "")));
        Ok(Self {
            scheme,
            user: user.map(|(name, password)| (decode(name), decode(password))),
            authority: host.to_ascii_lowercase(),
            path: path.to_owned(),
            from_home: false,
            is_scp: false,
        })
    }

    /// Reads `user@host:path`.
    fn parse_scp(text: &str) -> Result<Self, RemoteError> {
        let (authority, path) = text.split_once(':').unwrap_or((text, ""));
        if path.is_empty() {
            return Err(RemoteError::Malformed("has no path"));
        }
        let from_home = !path.starts_with('/');
        let rest = format!("{authority}/{}", path.trim_start_matches('/'));
        Ok(Self { from_home, is_scp: true, ..Self::parse(Scheme::Ssh, &rest)? })
    }

    /// Returns the path as the command at the other end of `ssh` wants it: `/~user/x` begins at
    /// the home of a user. That of a URL is decoded, as git does it.
    pub(super) fn ssh_path(&self) -> String {
        let inside = self.path.strip_prefix('/').unwrap_or(&self.path);
        let path = if self.from_home || inside.starts_with('~') { inside } else { &self.path };
        if self.is_scp { path.to_owned() } else { decode(path) }
    }

    /// Returns the path as the daemon of git wants it: decoded.
    pub(super) fn daemon_path(&self) -> String {
        decode(&self.path)
    }

    /// Returns the host, without the brackets of an IPv6 address, and the port if there is one.
    pub(super) fn host_and_port(&self) -> (&str, Option<&str>) {
        if let Some((host, rest)) =
            self.authority.strip_prefix('[').and_then(|it| it.split_once(']'))
        {
            return (host, rest.strip_prefix(':').filter(|it| !it.is_empty()));
        }
        match self.authority.split_once(':') {
            Some((host, port)) => (host, Some(port).filter(|it| !it.is_empty())),
            None => (&self.authority, None),
        }
    }
}

/// Checks that nothing of a password can stand outside of the user: what stands there is shown.
fn check_encoding(rest: &str, path: &str) -> Result<(), RemoteError> {
    if rest.contains(['?', '#']) {
        return Err(RemoteError::Malformed(
            "has a query or fragment; in a password write `%3F` for `?` and `%23` for `#`",
        ));
    }
    if path.contains('@') {
        return Err(RemoteError::Malformed(
            "has an `@` in its path; in a password write `%2F` for `/`, and in a path `%40` for `@`",
        ));
    }
    // They would end the command or the line in which the path is sent.
    if percent_decode_str(path).any(|it| it.is_ascii_control()) {
        return Err(RemoteError::Malformed("has a control character in its path"));
    }
    Ok(())
}

/// Returns whether a host has a port that is a number, or none; a password whose host is missing is not one.
fn has_valid_port(host: &str) -> bool {
    let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
    behind.split_once(':').is_none_or(|(_, port)| port.bytes().all(|it| it.is_ascii_digit()))
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_alphabetic())
        && text.chars().all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it))
}

/// Returns whether ssh is meant: `git@host:path`, `host:path`; a path with a colon is written with
/// a `/` before it, as git wants it too.
fn is_scp(text: &str) -> bool {
    text.split_once(':').is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}

impl fmt::Display for Url {
    /// Writes the URL without credentials; a user of `ssh` is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.from_home {
            let user = self.user.as_ref().map(|(name, _)| format!("{name}@")).unwrap_or_default();
            return write!(f, "ssh://{user}{}/~/{}", self.authority, self.ssh_path());
        }
        write!(f, "{}://{}{}", self.scheme.as_str(), self.authority, self.path)
    }
}

impl fmt::Display for Remote {
    /// Writes the address without credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Path(path) => path.display().fmt(f),
            Place::Url(url) => url.fmt(f),
        }
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Remote({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    #[test]
    fn credentials_are_never_shown() {
        let rows = [
            ("git://user:secret@host:9418/a/b.git", "git://host:9418/a/b.git"),
            ("https://user:se%63ret@Host/a.git", "https://host/a.git"),
            ("HTTPS://secret@host/a%40b.git", "https://host/a%40b.git"),
            ("https://u:sec%2Fret%40%3F@host/a.git", "https://host/a.git"),
            ("ssh://git:secret@host/a.git", "ssh://host/a.git"),
            ("https://a:b@secret@host/x", "https://host/x"),
            ("file:///srv/groups.git", "file:///srv/groups.git"),
            ("/srv/groups.git", "/srv/groups.git"),
            ("./a:b", "./a:b"),
        ];
        each_row(rows, |(text, shown)| {
            let remote = Remote::parse(text).unwrap();
            assert_eq!(remote.to_string(), shown);
            assert!(!format!("{remote:?} {}", remote.address()).contains("secret"), "{text}");
        });
    }

    #[test]
    fn paths_and_urls_of_files_name_directories() {
        for (text, expected) in [
            ("/srv/a b.git", Some("/srv/a b.git")),
            ("file:///srv/a%20b.git", Some("/srv/a b.git")),
            ("FILE://localhost/srv/x", Some("/srv/x")),
            ("https://host/srv/x", None),
            ("host:srv/x", None),
        ] {
            let directory = Remote::parse(text).unwrap().directory();
            assert_eq!(directory.as_deref(), expected.map(Path::new), "{text}");
        }
    }

    #[test]
    fn credentials_are_decoded() {
        let remote = Remote::parse("https://ci%40x:p%3Aw@host/a.git").unwrap();
        assert_eq!(remote.url().unwrap().user, Some(("ci@x".into(), "p:w".into())));
        assert_eq!(Remote::parse("https://host/a.git").unwrap().url().unwrap().user, None);
    }

    #[test]
    fn the_path_of_ssh_is_what_the_command_wants() {
        let rows = [
            (
                "ssh://git@host:2222/srv/x.git",
                "ssh://host:2222/srv/x.git",
                Some("git"),
                "/srv/x.git",
            ),
            ("ssh://host/~ada/x.git", "ssh://host/~ada/x.git", None, "~ada/x.git"),
            ("git@Host:org/x.git", "ssh://git@host/~/org/x.git", Some("git"), "org/x.git"),
            ("git@host:/srv/x.git", "ssh://host/srv/x.git", Some("git"), "/srv/x.git"),
            ("host:x.git", "ssh://host/~/x.git", None, "x.git"),
            ("ssh://host/a%40b%20c.git", "ssh://host/a%40b%20c.git", None, "/a@b c.git"),
            ("host:/a%40b.git", "ssh://host/a%40b.git", None, "/a%40b.git"),
        ];
        each_row(rows, |(text, shown, user, path)| {
            let remote = Remote::parse(text).unwrap();
            let url = remote.url().unwrap();
            let named = url.user.as_ref().map(|(name, _)| name.as_str());
            assert_eq!((remote.to_string().as_str(), named, &*url.ssh_path()), (shown, user, path));
        });
    }

    #[test]
    fn host_and_port_are_told_apart() {
        for (text, expected) in [
            ("git://host/a", ("host", None)),
            ("git://host:1/a", ("host", Some("1"))),
            ("git://[::1]/a", ("::1", None)),
            ("git://[::1]:1/a", ("::1", Some("1"))),
        ] {
            let remote = Remote::parse(text).unwrap();
            assert_eq!(remote.url().unwrap().host_and_port(), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_fetched_is_refused() {
        const QUERY: &str =
            "has a query or fragment; in a password write `%3F` for `?` and `%23` for `#`";
        const AT: &str = "has an `@` in its path; in a password write `%2F` for `/`, and in a path `%40` for `@`";
        let unsupported = |scheme: &str| RemoteError::Unsupported { scheme: scheme.into() };
        for (text, error) in [
            ("git@host:", RemoteError::Malformed("has no path")),
            ("ftp://host/x", unsupported("ftp")),
            (" ", RemoteError::Empty),
            ("https://host", RemoteError::Malformed("has no path")),
            ("https:///x", RemoteError::Malformed("has no host")),
            ("https://u:p@:1/x", RemoteError::Malformed("has no host")),
            ("https://host/x?token=secret", RemoteError::Malformed(QUERY)),
            ("https://u:a?secret@host/x", RemoteError::Malformed(QUERY)),
            ("https://u:a#secret@host/x", RemoteError::Malformed(QUERY)),
            ("git@host:x?y", RemoteError::Malformed(QUERY)),
            ("https://u:a/secret@host/x", RemoteError::Malformed(AT)),
            ("https://u:1/secret@host/x", RemoteError::Malformed(AT)),
            ("https://u:a@b/secret@host/x", RemoteError::Malformed(AT)),
            ("https:/u:secret@host/x", RemoteError::Malformed(AT)),
            ("ssh://git:a/secret@host/x", RemoteError::Malformed(AT)),
            ("git:secret@host:x", RemoteError::Malformed(AT)),
            ("git:a/secret@host:x", RemoteError::Malformed(AT)),
            ("https://u:secret/x", RemoteError::Malformed("has a port that is not a number")),
            ("ssh://host/a%0Ab", RemoteError::Malformed("has a control character in its path")),
            (
                "https://host/x\r\ny",
                RemoteError::Malformed("has a blank or control character in it"),
            ),
            ("file://host/x", RemoteError::Malformed("names a host for a file")),
        ] {
            assert_eq!(Remote::parse(text), Err(error), "{text}");
        }
    }
}
