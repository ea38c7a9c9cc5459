//! Where the store is.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sqlx::postgres::PgSslMode;

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

/// A text is not the location of a store. It may hold a password, so nothing of it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidStoreLocation {
    /// It is of another kind.
    #[error("expected `sqlite:FILE` or `postgres://USER@HOST/DATABASE`")]
    Form,
    /// It is a name that SQLite reads otherwise than as that of a file.
    #[error(
        "SQLite reads this name in its own way: write the path of a file, such as `sqlite:./NAME`"
    )]
    Name,
    /// It is not a URL.
    #[error(
        "the URL cannot be read ({0}): in a user and password `/`, `?`, `#`, `@`, `:` and `%` are written `%2F`, `%3F`, `%23`, `%40`, `%3A` and `%25`"
    )]
    Url(url::ParseError),
    /// The URL has a parameter that nothing reads.
    #[error("the URL has a parameter that is not one of these: {}", PARAMETERS.join(", "))]
    Parameter,
    /// A parameter of the URL has a value that it cannot have.
    #[error(
        "the URL has a value that cannot be used: `sslmode` is `disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`, `port` and `statement-cache-capacity` are numbers, and `hostaddr` is an address"
    )]
    Value,
}

/// The parameters that the library reads; it writes others to the log with their values.
const PARAMETERS: [&str; 15] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "options[SETTING]",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "ssl-ca",
    "statement-cache-capacity",
    "user",
];

/// Other names of some of these.
const ALIASES: [&str; 4] = ["ssl-cert", "ssl-key", "ssl-mode", "ssl-root-cert"];

/// Returns whether the library reads a parameter.
fn is_known(parameter: &str) -> bool {
    let is_setting = parameter.strip_prefix("options[").is_some_and(|it| it.ends_with(']'));
    is_setting || PARAMETERS.iter().chain(&ALIASES).any(|it| *it == parameter)
}

/// Returns whether a parameter that the library reads can have a value, which shows there at the first connection.
fn is_possible(parameter: &str, value: &str) -> bool {
    match parameter {
        "sslmode" | "ssl-mode" => PgSslMode::from_str(value).is_ok(),
        "port" => u16::from_str(value).is_ok(),
        "statement-cache-capacity" => usize::from_str(value).is_ok(),
        "hostaddr" => IpAddr::from_str(value).is_ok(),
        _ => true,
    }
}

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
                "" => Err(InvalidStoreLocation::Form),
                path if path.starts_with(':') || path.starts_with("file:") => {
                    Err(InvalidStoreLocation::Name)
                }
                path => Ok(Self::Sqlite(path.into())),
            };
        }
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(InvalidStoreLocation::Form);
        }
        let url = url::Url::parse(text).map_err(InvalidStoreLocation::Url)?;
        // Before the library sees them.
        if !url.query_pairs().all(|(parameter, _)| is_known(&parameter)) {
            return Err(InvalidStoreLocation::Parameter);
        }
        if !url.query_pairs().all(|(parameter, value)| is_possible(&parameter, &value)) {
            return Err(InvalidStoreLocation::Value);
        }
        match sqlx::any::AnyConnectOptions::from_str(text) {
            Ok(_) => Ok(Self::Postgres(PostgresUrl(text.to_owned()))),
            Err(_) => Err(InvalidStoreLocation::Form),
        }
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
    }

    #[test]
    fn what_is_wrong_with_a_location_is_said_without_what_it_holds() {
        for (text, expected) in [
            ("", "expected `sqlite:FILE`"),
            ("sqlite::memory:", "SQLite reads this name in its own way"),
            ("sqlite:file:nodes.sqlite", "SQLite reads this name in its own way"),
            ("nodes.sqlite", "expected `sqlite:FILE`"),
            ("sqlite:", "expected `sqlite:FILE`"),
            ("mysql://a:s3cret@b/c", "expected `sqlite:FILE`"),
            ("postgres:", "expected `sqlite:FILE`"),
            ("postgres://a:s3cret?x@db/c", "(invalid port number)"),
            ("postgres://a:1?s3cret@db/c", "has a parameter that is not one of"),
            ("postgres://a@db:99999/c?password=s3cret", "(invalid port number)"),
            ("postgres://a@db/c?sslpassword=s3cret", "has a parameter that is not one of"),
            ("postgres://a@db/c?PASSWORD=s3cret", "has a parameter that is not one of"),
            ("postgres://a@db/c?sslmod=verify-full&password=s3cret", "sslmode, sslrootcert"),
            ("postgres://a@db/c?sslmode=s3cret", "`sslmode` is `disable`"),
            ("postgres://a@db/c?port=s3cret", "`port` and `statement-cache"),
            ("postgres://a@db/c?options[s3cret=x", "has a parameter that is not one of"),
        ] {
            let error = text.parse::<StoreLocation>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
        for parameter in PARAMETERS.iter().chain(&ALIASES).chain(&["options[search_path]"]) {
            let value = match *parameter {
                "hostaddr" => "127.0.0.1",
                "sslmode" | "ssl-mode" => "require",
                _ => "1",
            };
            let parameter = parameter.replace("SETTING", "work_mem");
            let text = format!("postgres://a@db/c?{parameter}={value}");
            assert!(text.parse::<StoreLocation>().is_ok(), "{text}");
        }
    }
}
