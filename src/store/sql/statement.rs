//! Statements for both databases, and the values of their rows.

use sqlx::any::AnyRow;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AssertSqlSafe, Row as _};

/// A value in a statement.
#[derive(Clone, Debug)]
pub(in crate::store) enum SqlValue {
    Integer(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

impl From<i64> for SqlValue {
    fn from(value: i64) -> Self {
        Self::Integer(Some(value))
    }
}

impl From<Option<i64>> for SqlValue {
    fn from(value: Option<i64>) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for SqlValue {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.to_owned()))
    }
}

impl From<Option<String>> for SqlValue {
    fn from(value: Option<String>) -> Self {
        Self::Text(value)
    }
}

impl From<Vec<u8>> for SqlValue {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(Some(value))
    }
}

impl From<Option<Vec<u8>>> for SqlValue {
    fn from(value: Option<Vec<u8>>) -> Self {
        Self::Bytes(value)
    }
}

/// What stands for a parameter, and nowhere else in a statement.
const PLACE: char = '?';

/// What has PostgreSQL compare texts byte by byte, whatever its database is made for.
const BYTEWISE: &str = " COLLATE \"C\"";

/// A statement, and the values of its parameters.
///
/// Its text is put together from constants and parameters only: a value is never part of it.
#[derive(Clone, Debug, Default)]
pub(in crate::store) struct Statement {
    text: String,
    values: Vec<SqlValue>,
}

impl Statement {
    /// Begins with a text.
    pub(in crate::store) fn new(text: &'static str) -> Self {
        debug_assert!(!text.contains(PLACE), "a value is passed on its own: {text}");
        Self { text: text.to_owned(), values: Vec::new() }
    }

    /// Sets something of SQLite.
    pub(in crate::store) fn pragma(name: &'static str, value: i64) -> Self {
        Self { text: format!("PRAGMA {name}({value})"), values: Vec::new() }
    }

    /// Goes on with a text.
    pub(in crate::store) fn text(mut self, text: &'static str) -> Self {
        debug_assert!(!text.contains(PLACE), "a value is passed on its own: {text}");
        self.text.push_str(text);
        self
    }

    /// Goes on with a value.
    pub(in crate::store) fn value(mut self, value: impl Into<SqlValue>) -> Self {
        self.push(value.into());
        self
    }

    /// Goes on with values in parentheses.
    pub(in crate::store) fn list<V: Into<SqlValue>>(
        mut self,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.push_list(values.into_iter().map(Into::into));
        self
    }

    /// Goes on with rows of values.
    pub(in crate::store) fn rows(mut self, rows: impl IntoIterator<Item = Vec<SqlValue>>) -> Self {
        for (number, row) in rows.into_iter().enumerate() {
            self.text.push_str(if number == 0 { " VALUES " } else { ", " });
            self.push_list(row.into_iter());
        }
        self
    }

    fn push_list(&mut self, values: impl Iterator<Item = SqlValue>) {
        self.text.push('(');
        for (number, value) in values.enumerate() {
            if number > 0 {
                self.text.push_str(", ");
            }
            self.push(value);
        }
        self.text.push(')');
    }

    fn push(&mut self, value: SqlValue) {
        self.values.push(value);
        self.text.push(PLACE);
    }

    /// Writes the text for a database. SQLite looks each parameter that has a number up among all others, which takes
    /// the square of their number; PostgreSQL wants numbers.
    fn text_for(text: String, backend: &str) -> String {
        if backend != "PostgreSQL" {
            // SQLite compares bytes.
            return if text.contains(BYTEWISE) { text.replace(BYTEWISE, "") } else { text };
        }
        let mut numbered = String::with_capacity(text.len() * 2);
        for (number, part) in text.split(PLACE).enumerate() {
            if number > 0 {
                numbered.push('$');
                numbered.push_str(&number.to_string());
            }
            numbered.push_str(part);
        }
        numbered
    }

    fn query(self, connection: &AnyConnection) -> Query<'static, Any, sqlx::any::AnyArguments> {
        let text = Self::text_for(self.text, connection.backend_name());
        // Statements of many rows differ in their length: keeping them prepared would only take memory.
        let is_small = self.values.len() < 40;
        let mut query = sqlx::query(AssertSqlSafe(text)).persistent(is_small);
        for value in self.values {
            query = match value {
                SqlValue::Integer(value) => query.bind(value),
                SqlValue::Text(value) => query.bind(value),
                SqlValue::Bytes(value) => query.bind(value),
            };
        }
        query
    }

    /// Runs the statement; returns how many rows it changed.
    pub(in crate::store) async fn execute(
        self,
        connection: &mut AnyConnection,
    ) -> Result<u64, sqlx::Error> {
        Ok(self.query(connection).execute(connection).await?.rows_affected())
    }

    /// Returns the rows that the statement finds.
    pub(in crate::store) async fn fetch(
        self,
        connection: &mut AnyConnection,
    ) -> Result<Vec<AnyRow>, sqlx::Error> {
        self.query(connection).fetch_all(connection).await
    }

    /// Returns the first row that the statement finds.
    pub(in crate::store) async fn first(
        self,
        connection: &mut AnyConnection,
    ) -> Result<Option<AnyRow>, sqlx::Error> {
        self.query(connection).fetch_optional(connection).await
    }
}

/// Returns a value of a row.
pub(in crate::store) fn integer(row: &AnyRow, column: usize) -> Result<i64, sqlx::Error> {
    row.try_get(column)
}

/// Returns a value of a row that may be null.
pub(in crate::store) fn maybe_integer(
    row: &AnyRow,
    column: usize,
) -> Result<Option<i64>, sqlx::Error> {
    row.try_get(column)
}

/// Returns a text of a row.
pub(in crate::store) fn text(row: &AnyRow, column: usize) -> Result<String, sqlx::Error> {
    row.try_get(column)
}

/// Returns a text of a row that may be null.
pub(in crate::store) fn maybe_text(
    row: &AnyRow,
    column: usize,
) -> Result<Option<String>, sqlx::Error> {
    row.try_get(column)
}

/// Returns bytes of a row.
pub(in crate::store) fn bytes(row: &AnyRow, column: usize) -> Result<Vec<u8>, sqlx::Error> {
    row.try_get(column)
}

/// Returns bytes of a row that may be null.
pub(in crate::store) fn maybe_bytes(
    row: &AnyRow,
    column: usize,
) -> Result<Option<Vec<u8>>, sqlx::Error> {
    row.try_get(column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_database_gets_the_parameters_that_it_reads_fastest() {
        let statement = Statement::new("SELECT name FROM nodes WHERE id = ").value(1);
        let statement = statement.text(" AND name IN ").list(["a?", "$1"]);
        assert_eq!(
            Statement::text_for(statement.text.clone(), "PostgreSQL"),
            "SELECT name FROM nodes WHERE id = $1 AND name IN ($2, $3)"
        );
        assert_eq!(
            Statement::text_for(statement.text, "SQLite"),
            "SELECT name FROM nodes WHERE id = ? AND name IN (?, ?)"
        );
    }
}
