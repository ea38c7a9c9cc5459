//! Reading check-ins.

use std::collections::HashMap;

use jiff::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use super::check_in::CheckInOrigin;
use super::check_in::is_bare;
use super::compression::decompress;
use super::database::Database;
use super::error::{StoreError, StoreFault};
use super::said::{KnownParts, PartTimes};
use super::sql::{Statement, bytes, integer, maybe_bytes, maybe_integer, maybe_text, text};
use super::transition::read_commit;

/// How many rows are looked through at a time.
const LOOKED_THROUGH: i64 = 256;

/// A check-in as it is read: its facts are still compressed.
#[derive(Debug)]
pub(super) struct StoredRow {
    pub(super) name: String,
    pub(super) origin: CheckInOrigin,
    pub(super) parts: KnownParts,
    raw_bytes: usize,
    body: Vec<u8>,
}

/// The columns of [`StoredRow`].
const ROW: &str = "SELECT n.name, n.checked_in, n.checked_in_commit, n.transaction_uuid, \
     n.raw_bytes, f.body, n.writer, n.last_seen, n.facts_at, n.trusted_at, n.has_facts FROM nodes n JOIN facts f ON f.node = n.id ";

impl StoredRow {
    fn read(row: &AnyRow) -> Result<Self, sqlx::Error> {
        let time = Timestamp::from_microsecond(integer(row, 1)?);
        let time = time.map_err(|error| sqlx::Error::Decode(error.into()))?;
        let commit = maybe_bytes(row, 2)?.as_deref().and_then(read_commit);
        let origin = CheckInOrigin { time, transaction_uuid: maybe_text(row, 3)?, commit };
        let raw_bytes = usize::try_from(integer(row, 4)?).unwrap_or_default();
        let parts = KnownParts {
            writer: integer(row, 6)?,
            last_seen: integer(row, 7)?,
            times: PartTimes::of_row(
                integer(row, 1)?,
                maybe_integer(row, 8)?,
                maybe_integer(row, 9)?,
            ),
            has_facts: integer(row, 10)? != 0,
            is_bare: is_bare(raw_bytes),
        };
        Ok(Self { name: text(row, 0)?, origin, parts, raw_bytes, body: bytes(row, 5)? })
    }

    /// Reads rows by their names.
    pub(super) async fn load(
        connection: &mut AnyConnection,
        names: &[&str],
    ) -> Result<HashMap<String, Self>, sqlx::Error> {
        if names.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = Statement::new(ROW).text("WHERE n.name IN ").list(names.iter().copied());
        let rows = rows.fetch(connection).await?;
        rows.iter().map(|row| Self::read(row).map(|it| (it.name.clone(), it))).collect()
    }

    /// Returns facts and trusted data, in JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if they are damaged.
    pub(super) fn text(&self) -> Result<Vec<u8>, StoreError> {
        decompress(&self.body, self.raw_bytes).map_err(|error| {
            let reason = format!("the row of `{}` is damaged: {error}", self.name);
            StoreError::new(StoreFault::Row, "read", reason)
        })
    }
}

/// The names from which on is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum From<'n> {
    /// A name, and those behind it.
    Name(&'n str),
    /// The names behind one.
    After(&'n str),
}

impl<'n> From<'n> {
    /// Reads what [`after`](super::check_ins::after) makes.
    pub(super) fn new(from: &'n str) -> Self {
        from.strip_suffix('\0').map_or(Self::Name(from), Self::After)
    }

    fn condition(&self, statement: Statement, column: &'static str) -> Statement {
        let statement = statement.text(column);
        match self {
            Self::Name(name) => statement.text(" >= ").value(*name),
            Self::After(name) => statement.text(" > ").value(*name),
        }
    }
}

impl Database {
    /// Returns the check-in of a node.
    pub(super) fn row(&self, name: &str) -> Result<Option<StoredRow>, StoreError> {
        self.connections.read(async |connection| {
            let found = Statement::new(ROW).text("WHERE n.name = ").value(name);
            found.first(connection).await?.as_ref().map(StoredRow::read).transpose()
        })
    }

    /// Returns how many bytes the check-in of a node takes when it is read.
    pub(super) fn row_bytes(&self, name: &str) -> Result<Option<usize>, StoreError> {
        self.connections.read(async |connection| {
            let found = Statement::new("SELECT raw_bytes FROM nodes WHERE name = ").value(name);
            found.first(connection).await?.as_ref().map(size).transpose()
        })
    }

    /// Returns the first name from a name on and how many bytes its row has, without reading the row.
    pub(super) fn first_from(&self, from: &str) -> Result<Option<(String, usize)>, StoreError> {
        self.connections.read(async |connection| {
            let first = Statement::new("SELECT raw_bytes, name FROM nodes WHERE ");
            let first = From::new(from).condition(first, "name").text(" ORDER BY name LIMIT 1");
            let Some(row) = first.first(connection).await? else { return Ok(None) };
            Ok(Some((text(&row, 1)?, size(&row)?)))
        })
    }

    /// Returns rows by name from a name on, until they have so many bytes; at least one, if there is
    /// one.
    pub(super) fn rows(&self, from: &str, most: usize) -> Result<Vec<StoredRow>, StoreError> {
        self.connections.read_together(async |connection| {
            let sizes = Statement::new("SELECT raw_bytes, name FROM nodes WHERE ");
            let sizes = From::new(from).condition(sizes, "name");
            let sizes = sizes.text(" ORDER BY name LIMIT ").value(LOOKED_THROUGH);
            let (mut last, mut taken) = (None, 0);
            for row in sizes.fetch(connection).await? {
                taken += size(&row)?;
                if last.is_some() && taken > most {
                    break;
                }
                last = Some(text(&row, 1)?);
            }
            let Some(last) = last else { return Ok(Vec::new()) };
            let rows = From::new(from).condition(Statement::new(ROW).text("WHERE "), "n.name");
            let rows = rows.text(" AND n.name <= ").value(last.as_str()).text(" ORDER BY n.name");
            rows.fetch(connection).await?.iter().map(StoredRow::read).collect()
        })
    }

    /// Returns the name at an offset, in the order of names; none after the last.
    pub(super) fn name_at(&self, offset: usize) -> Result<Option<String>, StoreError> {
        let offset = i64::try_from(offset).unwrap_or(i64::MAX);
        self.connections.read(async |connection| {
            let names = Statement::new("SELECT name FROM nodes ORDER BY name LIMIT 1 OFFSET ");
            let found = names.value(offset).first(connection).await?;
            found.as_ref().map(|it| text(it, 0)).transpose()
        })
    }
}

fn size(row: &AnyRow) -> Result<usize, sqlx::Error> {
    Ok(usize::try_from(integer(row, 0)?).unwrap_or_default())
}
