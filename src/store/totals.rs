//! How much is kept; who writes locks it.

use sqlx::AnyConnection;

use super::sql::{Dialect, Statement, integer};

/// Returns how many nodes and bytes are kept; other daemons wait until the transaction ends.
pub(super) async fn lock_totals(
    connection: &mut AnyConnection,
    dialect: &Dialect,
) -> Result<(i64, i64), sqlx::Error> {
    let totals = Statement::new("SELECT nodes, bytes FROM totals WHERE id = 1");
    let totals = match dialect {
        Dialect::Sqlite => totals,
        Dialect::Postgres => totals.text(" FOR UPDATE"),
    };
    match totals.first(connection).await? {
        Some(row) => Ok((integer(&row, 0)?, integer(&row, 1)?)),
        None => Err(sqlx::Error::RowNotFound),
    }
}

/// Notes how many nodes and bytes are kept.
pub(super) async fn save_totals(
    connection: &mut AnyConnection,
    (nodes, bytes): (i64, i64),
) -> Result<(), sqlx::Error> {
    let totals = Statement::new("UPDATE totals SET nodes = ").value(nodes);
    let totals = totals.text(", bytes = ").value(bytes).text(" WHERE id = 1");
    totals.execute(connection).await.map(drop)
}
