//! Which SQL a database speaks.

/// Which database it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) enum Dialect {
    Sqlite,
    Postgres,
}
