//! The changes of a node's answers.

use jiff::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use super::database::Database;
use super::error::StoreError;
use super::listing::{answers, time};
use super::sql::{Statement, integer, maybe_bytes, maybe_integer};
use super::transition::{read_commit, read_facts};
use super::view::{FactChange, StoredChange};
use crate::answer::{AnswerRecord, ChangeCause};

impl Database {
    /// Returns changes of a node's answers, the newest first, from before a time.
    pub(super) fn history(
        &self,
        name: &str,
        limit: usize,
        before: Option<Timestamp>,
    ) -> Result<Vec<StoredChange>, StoreError> {
        let mut before = before.map_or(i64::MAX, Timestamp::as_microsecond);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.connections.read_together(async |connection| {
            loop {
                let columns = "SELECT time, commit_before, commit_after, answer_before, \
                     answer_after, cause, facts FROM changes WHERE node = \
                     (SELECT id FROM nodes WHERE name = ";
                let page = Statement::new(columns).value(name).text(") AND time < ").value(before);
                let page = page.text(" ORDER BY time DESC LIMIT ").value(limit);
                let rows = page.fetch(connection).await?;
                let changes = read(connection, &rows).await?;
                match rows.last() {
                    // Where none can be read, there may still be some before.
                    Some(last) if changes.is_empty() => before = integer(last, 0)?,
                    _ => return Ok(changes),
                }
            }
        })
    }
}

/// Reads changes. One whose answer cannot be read is left out.
async fn read(
    connection: &mut AnyConnection,
    rows: &[AnyRow],
) -> Result<Vec<StoredChange>, sqlx::Error> {
    let mut ids = Vec::new();
    for row in rows {
        ids.push(integer(row, 4)?);
        ids.extend(maybe_integer(row, 3)?);
    }
    let answers = answers(connection, ids, AnswerRecord::from_bytes).await?;
    let mut changes = Vec::with_capacity(rows.len());
    for row in rows {
        let commit = maybe_bytes(row, 2)?.as_deref().and_then(read_commit);
        let after = answers.get(&integer(row, 4)?).cloned();
        let (Some(commit), Some(after)) = (commit, after) else { continue };
        let facts = maybe_bytes(row, 6)?.as_deref().and_then(read_facts);
        let facts = facts.unwrap_or_default().into_iter().map(|it| FactChange {
            path: it.path,
            before: it.before,
            after: it.after,
        });
        changes.push(StoredChange {
            time: time(integer(row, 0)?)?,
            commit,
            commit_before: maybe_bytes(row, 1)?.as_deref().and_then(read_commit),
            cause: cause(integer(row, 5)?),
            facts: facts.collect(),
            before: maybe_integer(row, 3)?.and_then(|it| answers.get(&it).cloned()),
            after,
        });
    }
    Ok(changes)
}

/// Returns the cause for which a number stands.
fn cause(number: i64) -> ChangeCause {
    let found = ChangeCause::ALL.into_iter().find(|it| super::batch::cause_number(*it) == number);
    found.unwrap_or(ChangeCause::Both)
}
