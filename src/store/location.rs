//! Where the store is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::config::without_secrets;

/// Where nodes are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    /// In memory, until the process ends.
    Memory,
    /// In a file of SQLite.
    Sqlite(PathBuf),
    /// In a database of a PostgreSQL server, which several daemons may share.
    Postgres(PostgresUrl),
}

/// The URL of a PostgreSQL database. It may hold a password, so it is never shown whole.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

/// A text is not the location of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `sqlite:FILE` or `postgres://USER@HOST/DATABASE`")]
pub struct InvalidStoreLocation;

impl StoreLocation {
    /// Returns the file, where there is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Memory | Self::Postgres(_) => None,
        }
    }
}

impl FromStr for StoreLocation {
    type Err = InvalidStoreLocation;

    fn from_str(text: &str) -> Result<Self, InvalidStoreLocation> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path {
                "" => Err(InvalidStoreLocation),
                path => Ok(Self::Sqlite(path.into())),
            };
        }
        let is_postgres = text.starts_with("postgres://") || text.starts_with("postgresql://");
        if is_postgres && sqlx::any::AnyConnectOptions::from_str(text).is_ok() {
            return Ok(Self::Postgres(PostgresUrl(text.to_owned())));
        }
        Err(InvalidStoreLocation)
    }
}

impl PostgresUrl {
    /// Returns the whole URL, which may hold a password.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns whether it has the password of its user.
    pub fn has_password(&self) -> bool {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let user = place.rsplit_once('@').map_or("", |(user, _)| user);
        user.contains(':') || query.split('&').any(|it| it.starts_with("password="))
    }
}

/// Leaves out user, password and parameters.
impl fmt::Display for PostgresUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = without_secrets(&self.0);
        let rest = shown.split_once("://").map_or("", |(_, rest)| rest);
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        write!(formatter, "postgres://{rest}")
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => formatter.write_str("memory"),
            Self::Sqlite(path) => write!(formatter, "sqlite:{}", path.display()),
            Self::Postgres(url) => fmt::Display::fmt(url, formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_read_and_shown_without_secrets() {
        for (text, shown) in [
            ("sqlite:/var/lib/clade/nodes.sqlite", "sqlite:/var/lib/clade/nodes.sqlite"),
            ("sqlite:///var/lib/clade/nodes.sqlite", "sqlite:/var/lib/clade/nodes.sqlite"),
            ("sqlite:nodes.sqlite", "sqlite:nodes.sqlite"),
            (
                "postgres://clade:s3cret@db.example.com:5432/clade?sslmode=require",
                "postgres://db.example.com:5432/clade",
            ),
            ("postgresql://clade:a@b@db/clade", "postgres://db/clade"),
            ("postgres:///clade?host=/run/postgresql", "postgres:///clade"),
        ] {
            let location: StoreLocation = text.parse().unwrap();
            assert_eq!(location.to_string(), shown);
            assert!(!format!("{location:?}").contains("s3cret"));
        }
        let has_password = |text: &str| match text.parse().unwrap() {
            StoreLocation::Postgres(url) => url.has_password(),
            other => panic!("{other}"),
        };
        assert!(has_password("postgres://clade:s3cret@db/clade"));
        assert!(has_password("postgres://db/clade?user=clade&password=s3cret"));
        assert!(!has_password("postgres://clade@db:5432/clade?sslmode=require"));
        for text in ["", "nodes.sqlite", "sqlite:", "mysql://a/b", "postgres:"] {
            assert_eq!(text.parse::<StoreLocation>(), Err(InvalidStoreLocation), "{text}");
        }
    }
}
