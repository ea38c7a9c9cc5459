//! What a failure of a database means for the store.

use super::dialect::Dialect;
use crate::store::error::StoreFault;

/// The log ends before a row that was written to it.
const SHORT_READ: u32 = 522;

/// Writing to the file failed, such as behind a limit of its size.
const WRITE: u32 = 778;

/// Returns what a state of PostgreSQL means: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn fault_of_state(state: &str) -> StoreFault {
    match state {
        "53100" => StoreFault::DiskFull,
        "55P03" => StoreFault::Locked,
        // A deadlock, or a role that may not write: what is there can still be read. A standby (25006) is connected to
        // again, since the name may stand for another server then.
        "40001" | "40P01" | "42501" => StoreFault::Statement,
        // Of the class of data exceptions, those of one value, and not of an encoding or a sequence that all share.
        "22001" | "22003" | "22007" | "22008" | "22021" | "22P02" | "22P03" => StoreFault::Value,
        _ => StoreFault::Io,
    }
}

/// Returns what a failure means for the store.
pub(super) fn fault_of(dialect: &Dialect, error: &sqlx::Error) -> StoreFault {
    match (dialect, error) {
        (Dialect::Sqlite, sqlx::Error::Database(error)) => {
            let code = error.code().and_then(|it| it.parse::<u32>().ok()).unwrap_or_default();
            match code {
                SHORT_READ => return StoreFault::Damaged,
                WRITE => return StoreFault::NotWritten,
                _ => {}
            }
            // The lowest byte is the kind.
            match code & 0xff {
                11 | 26 => StoreFault::Damaged,
                13 => StoreFault::DiskFull,
                5 | 6 => StoreFault::Locked,
                1 | 9 | 18 | 19 | 20 | 25 => StoreFault::Statement,
                _ => StoreFault::Io,
            }
        }
        (Dialect::Postgres, sqlx::Error::Database(error)) => {
            fault_of_state(error.code().as_deref().unwrap_or_default())
        }
        // A value that the schema does not allow: a damaged file, or not one of ours.
        (
            Dialect::Sqlite,
            sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::Decode(_)
            | sqlx::Error::ColumnIndexOutOfBounds { .. },
        ) => StoreFault::Damaged,
        _ => StoreFault::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_postgresql_does_not_take_says_nothing_against_the_database() {
        let cases = [
            ("22021", StoreFault::Value),
            ("22P02", StoreFault::Value),
            ("22003", StoreFault::Value),
            ("22P05", StoreFault::Io),
            ("2200H", StoreFault::Io),
            ("53100", StoreFault::DiskFull),
            ("55P03", StoreFault::Locked),
            ("25006", StoreFault::Io),
            ("42501", StoreFault::Statement),
            ("42P01", StoreFault::Io),
            ("57P01", StoreFault::Io),
            ("23505", StoreFault::Io),
            ("", StoreFault::Io),
        ];
        for (state, expected) in cases {
            assert_eq!(fault_of_state(state), expected, "{state}");
        }
    }
}
