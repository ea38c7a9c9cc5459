//! Forgetting: nodes that are gone, changes that are old, answers that nothing refers to.

use jiff::Timestamp;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use super::batch::delete_nodes;
use super::database::Database;
use super::error::StoreError;
use super::forgotten::Deletion;
use super::sql::{Dialect, Statement, integer, maybe_integer};
use super::totals::{lock_totals, save_totals};

/// How many rows are deleted in one transaction: the check-ins wait for it.
const AT_ONCE: i64 = 1000;

/// How many pages of the file are given back at a time.
const PAGES: i64 = 2000;

impl Database {
    /// Returns the time by the clock that all daemons with the store share: that of the server, if there is one.
    pub(super) fn server_time(&self) -> Result<Option<Timestamp>, StoreError> {
        if self.connections.dialect != Dialect::Postgres {
            return Ok(None);
        }
        let now = "SELECT CAST(EXTRACT(EPOCH FROM CURRENT_TIMESTAMP) * 1000000 AS BIGINT)";
        let micros = self.connections.read(async |connection| {
            let row = Statement::new(now).first(connection).await?;
            row.as_ref().map(|it| integer(it, 0)).transpose()
        })?;
        Ok(micros.and_then(|it| Timestamp::from_microsecond(it).ok()))
    }

    /// Forgets nodes that were last seen before a time, in microseconds since 1970; returns how many, and
    /// no more than are deleted at once.
    pub(super) fn forget(&self, before: i64) -> Result<usize, StoreError> {
        let old = Statement::new(
            "SELECT id, stored_bytes FROM nodes WHERE settled IN (0, 1) AND last_seen < ",
        );
        self.delete(old.value(before).text(" ORDER BY last_seen LIMIT ").value(AT_ONCE))
    }

    /// Forgets a node; returns whether it was known. What is deleted stands in the log of a file until
    /// [`Self::give_back`].
    pub(super) fn forget_node(&self, name: &str, deletion: Deletion) -> Result<bool, StoreError> {
        let node = Statement::new("SELECT id, stored_bytes FROM nodes WHERE name = ").value(name);
        let count = self.write_kept(async |connection| {
            let failed = self.connections.failed("written");
            let dialect = &self.connections.dialect;
            let count = delete(connection, dialect, node).await.map_err(&failed)?;
            deletion.note(connection, dialect, name).await.map_err(&failed)?;
            Ok(count)
        });
        Ok(count? > 0)
    }

    /// Deletes the nodes that a statement finds, with the answers that they alone had.
    fn delete(&self, nodes: Statement) -> Result<usize, StoreError> {
        self.write_kept(async |connection| {
            let failed = self.connections.failed("written");
            let dialect = &self.connections.dialect;
            delete(connection, dialect, nodes).await.map_err(failed)
        })
    }

    /// Deletes changes from before a time, in microseconds since 1970; returns how many, and no more than
    /// are deleted at once.
    pub(super) fn forget_changes(&self, before: i64) -> Result<usize, StoreError> {
        self.connections.write(async |connection| {
            let failed = self.connections.failed("written");
            let dialect = &self.connections.dialect;
            let delete = async {
                // Another daemon must not refer to an answer just when it is deleted.
                lock_totals(connection, dialect).await?;
                let old =
                    "SELECT node, time, answer_before, answer_after FROM changes WHERE time < ";
                let old = Statement::new(old).value(before).text(" ORDER BY time LIMIT ");
                let rows = old.value(AT_ONCE).fetch(connection).await?;
                let answers = answers_of(&rows, 2)?;
                let Some(last) = rows.last() else { return Ok(0) };
                let last = integer(last, 1)?;
                let gone = Statement::new("DELETE FROM changes WHERE time <= ").value(last);
                let count = gone.execute(connection).await?;
                delete_unused(connection, answers).await?;
                Ok(usize::try_from(count).unwrap_or(usize::MAX))
            };
            delete.await.map_err(failed)
        })
    }

    /// Deletes answers and path sets that nothing refers to: those of nodes that gave way, and of check-ins that
    /// were not written in the end. Examines some of the answers, those after an id; returns the last of them, or
    /// none if there are no more, and how many rows it deleted.
    pub(super) fn sweep(&self, after: i64) -> Result<(Option<i64>, usize), StoreError> {
        self.connections.write(async |connection| {
            let failed = self.connections.failed("written");
            let dialect = &self.connections.dialect;
            sweep(connection, dialect, after).await.map_err(failed)
        })
    }

    /// Gives free pages of the file back; returns whether none is left and the log is empty, so that nothing is
    /// left of what was deleted.
    pub(super) fn give_back(&self) -> Result<bool, StoreError> {
        if self.connections.dialect != Dialect::Sqlite || self.is_in_memory() {
            return Ok(true);
        }
        self.connections.maintain(Statement::pragma("incremental_vacuum", PAGES))?;
        let free = self.connections.read(async |connection| {
            let free = Statement::new("PRAGMA freelist_count").first(connection).await?;
            free.as_ref().map_or(Ok(0), |it| integer(it, 0))
        })?;
        Ok(self.truncate_log()? && free == 0)
    }
}

async fn delete(
    connection: &mut AnyConnection,
    dialect: &Dialect,
    nodes: Statement,
) -> Result<usize, sqlx::Error> {
    let (count, bytes) = lock_totals(connection, dialect).await?;
    let rows = nodes.fetch(connection).await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let ids = rows.iter().map(|it| integer(it, 0)).collect::<Result<Vec<i64>, _>>()?;
    let sizes = rows.iter().map(|it| integer(it, 1)).collect::<Result<Vec<i64>, _>>()?;
    let answers = Statement::new("SELECT answer_before, answer_after FROM changes WHERE node IN ")
        .list(ids.iter().copied())
        .fetch(connection)
        .await?;
    let mut answers = answers_of(&answers, 0)?;
    let current = Statement::new("SELECT answer, answer FROM nodes WHERE id IN ")
        .list(ids.iter().copied())
        .fetch(connection)
        .await?;
    answers.extend(answers_of(&current, 0)?);
    delete_nodes(connection, dialect, &ids).await?;
    delete_unused(connection, answers).await?;
    let gone = i64::try_from(ids.len()).unwrap_or(i64::MAX);
    save_totals(connection, (count - gone, bytes - sizes.iter().sum::<i64>())).await?;
    Ok(ids.len())
}

async fn sweep(
    connection: &mut AnyConnection,
    dialect: &Dialect,
    after: i64,
) -> Result<(Option<i64>, usize), sqlx::Error> {
    // Another daemon must not refer to one of them just when it is deleted.
    lock_totals(connection, dialect).await?;
    let some = Statement::new("SELECT id FROM answers WHERE id > ").value(after);
    let some = some.text(" ORDER BY id LIMIT ").value(AT_ONCE).fetch(connection).await?;
    let some = some.iter().map(|it| integer(it, 0)).collect::<Result<Vec<i64>, _>>()?;
    let last = some.last().copied();
    let answers = delete_unused(connection, some).await?;
    let unused = "DELETE FROM path_sets \
                  WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE path_set = path_sets.id)";
    let path_sets = Statement::new(unused).execute(connection).await?;
    Ok((last, answers + usize::try_from(path_sets).unwrap_or_default()))
}

/// Returns the answers in two columns of rows.
fn answers_of(rows: &[AnyRow], first: usize) -> Result<Vec<i64>, sqlx::Error> {
    let mut found = Vec::new();
    for row in rows {
        found.extend(maybe_integer(row, first)?);
        found.extend(maybe_integer(row, first + 1)?);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Deletes those answers that neither a node nor a change refers to; returns how many.
async fn delete_unused(
    connection: &mut AnyConnection,
    answers: Vec<i64>,
) -> Result<usize, sqlx::Error> {
    let mut deleted = 0;
    for some in answers.chunks(500) {
        let unused = Statement::new("SELECT id FROM answers WHERE id IN ")
            .list(some.iter().copied())
            .text(" AND NOT EXISTS (SELECT 1 FROM nodes WHERE answer = answers.id)")
            .text(" AND NOT EXISTS (SELECT 1 FROM changes WHERE answer_after = answers.id)")
            .text(" AND NOT EXISTS (SELECT 1 FROM changes WHERE answer_before = answers.id)");
        let unused = unused.fetch(connection).await?;
        let ids = unused.iter().map(|it| integer(it, 0)).collect::<Result<Vec<i64>, _>>()?;
        if ids.is_empty() {
            continue;
        }
        deleted += ids.len();
        for from in [
            "DELETE FROM answer_groups WHERE answer IN ",
            "DELETE FROM answer_classes WHERE answer IN ",
            "DELETE FROM answers WHERE id IN ",
        ] {
            Statement::new(from).list(ids.iter().copied()).execute(connection).await?;
        }
    }
    Ok(deleted)
}
