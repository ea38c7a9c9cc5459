//! Times that are ahead of the clock: they were noted while it was wrong, and would count as new until they come.

use std::collections::HashMap;

use sqlx::AnyConnection;

use super::database::Database;
use super::error::StoreError;
use super::sql::{Statement, integer};
use super::totals::lock_totals;

/// How far ahead of the clock a time is at least that is set to now, in microseconds: clocks of replicas differ, and
/// what is less ahead is past soon.
const AHEAD: i64 = 600_000_000;

/// How many rows are changed in one transaction: the check-ins wait for it.
const AT_ONCE: i64 = 500;

/// How long before now the first change of a node is put, in microseconds: no two changes of a node have one time.
const ROOM: i64 = 1_000_000;

/// A change with a time that is ahead of the clock.
#[derive(Clone, Copy, Debug)]
struct AheadChange {
    node: i64,
    time: i64,
}

impl Database {
    /// Sets the times of nodes that were last seen ahead of the clock to now, in microseconds since 1970; returns how
    /// many nodes, and no more than are changed at once.
    pub(super) fn set_back_nodes(&self, now: i64) -> Result<usize, StoreError> {
        self.set_back(async |connection| set_back_nodes(connection, now).await)
    }

    /// Sets the times of changes that are ahead of the clock to about now, in the order in which they were, with the
    /// times since when nodes have their answers; returns how many changes, and no more than are changed at once.
    pub(super) fn set_back_changes(&self, now: i64) -> Result<usize, StoreError> {
        self.set_back(async |connection| set_back_changes(connection, now).await)
    }

    /// Sets the times when daemons were seen that are ahead of the clock to now: one that runs says again when it
    /// is there. Returns how many daemons.
    pub(super) fn set_back_replicas(&self, now: i64) -> Result<usize, StoreError> {
        self.set_back(async |connection| {
            let seen = Statement::new("UPDATE replicas SET seen_at = ").value(now);
            let seen = seen.text(" WHERE seen_at > ").value(now.saturating_add(AHEAD));
            Ok(usize::try_from(seen.execute(connection).await?).unwrap_or_default())
        })
    }

    fn set_back(
        &self,
        operation: impl AsyncFnOnce(&mut AnyConnection) -> Result<usize, sqlx::Error>,
    ) -> Result<usize, StoreError> {
        self.connections.write(async |connection| {
            let failed = self.connections.failed("written");
            // Another daemon writes the rows of nodes as it has read them.
            let locked = lock_totals(connection, &self.connections.dialect).await;
            locked.map_err(&failed)?;
            operation(connection).await.map_err(failed)
        })
    }
}

async fn set_back_nodes(connection: &mut AnyConnection, now: i64) -> Result<usize, sqlx::Error> {
    // Both values of a column say nothing, and let the index that begins with it be searched.
    let ahead = Statement::new("SELECT id FROM nodes WHERE settled IN (0, 1) AND last_seen > ");
    let ahead = ahead.value(now.saturating_add(AHEAD)).text(" LIMIT ").value(AT_ONCE);
    let ahead = ahead.fetch(connection).await?;
    let ids = ahead.iter().map(|it| integer(it, 0)).collect::<Result<Vec<i64>, _>>()?;
    if ids.is_empty() {
        return Ok(0);
    }
    // Facts that came before the last answer still do.
    let set = Statement::new("UPDATE nodes SET checked_in = CASE WHEN checked_in < ").value(now);
    let set = set.text(" THEN checked_in WHEN checked_in < last_seen THEN ");
    let set = set.value(now.saturating_sub(1)).text(" ELSE ").value(now);
    let set = set.text(" END, first_seen = CASE WHEN first_seen < ").value(now);
    let set = set.text(" THEN first_seen ELSE ").value(now).text(" END, last_seen = ");
    let set = set.value(now).text(" WHERE id IN ").list(ids.iter().copied());
    set.execute(connection).await?;
    Ok(ids.len())
}

async fn set_back_changes(connection: &mut AnyConnection, now: i64) -> Result<usize, sqlx::Error> {
    let changes = changes_ahead(connection, now).await?;
    let mut times = newest_times(connection, &changes, now).await?;
    let mut changed = 0;
    for (at, &AheadChange { node, time }) in changes.iter().enumerate() {
        let earliest = now.saturating_sub(ROOM);
        let newest = times.entry(node).or_insert(earliest);
        // It is never later than it was: the times of one node only grow. The next one is free at that.
        let next = newest.saturating_add(1).max(earliest);
        *newest = next;
        if next == time {
            continue;
        }
        let set = Statement::new("UPDATE changes SET time = ").value(next);
        let set = set.text(" WHERE node = ").value(node).text(" AND time = ").value(time);
        set.execute(connection).await?;
        changed += 1;
        // Only the last change of a node can be the one to its answer.
        if changes.get(at + 1).is_none_or(|it| it.node != node) {
            let since = Statement::new("UPDATE nodes SET since = ").value(next);
            let since = since.text(" WHERE id = ").value(node).text(" AND since = ").value(time);
            since.execute(connection).await?;
        }
    }
    Ok(changed)
}

/// Returns the first changes that come after now, of nodes that have some far ahead of the clock, by node and time.
async fn changes_ahead(
    connection: &mut AnyConnection,
    now: i64,
) -> Result<Vec<AheadChange>, sqlx::Error> {
    let nodes = "SELECT DISTINCT node FROM (SELECT node FROM changes WHERE time > ";
    let nodes = Statement::new(nodes).value(now.saturating_add(AHEAD));
    let nodes = nodes.text(" ORDER BY time LIMIT ").value(AT_ONCE).text(") AS ahead");
    let nodes = nodes.fetch(connection).await?;
    let nodes = nodes.iter().map(|it| integer(it, 0)).collect::<Result<Vec<i64>, _>>()?;
    if nodes.is_empty() {
        return Ok(Vec::new());
    }
    let rows = Statement::new("SELECT node, time FROM changes WHERE node IN ").list(nodes);
    let rows = rows.text(" AND time > ").value(now);
    let rows = rows.text(" ORDER BY node, time LIMIT ").value(AT_ONCE).fetch(connection).await?;
    let change = |row| Ok(AheadChange { node: integer(row, 0)?, time: integer(row, 1)? });
    rows.iter().map(change).collect()
}

/// Returns the newest time until now of the changes of each node that has one.
async fn newest_times(
    connection: &mut AnyConnection,
    changes: &[AheadChange],
    now: i64,
) -> Result<HashMap<i64, i64>, sqlx::Error> {
    let mut nodes: Vec<i64> = changes.iter().map(|it| it.node).collect();
    nodes.dedup();
    if nodes.is_empty() {
        return Ok(HashMap::new());
    }
    let newest = Statement::new("SELECT node, MAX(time) FROM changes WHERE node IN ").list(nodes);
    let newest = newest.text(" AND time <= ").value(now).text(" GROUP BY node");
    let newest = newest.fetch(connection).await?;
    newest.iter().map(|row| Ok((integer(row, 0)?, integer(row, 1)?))).collect()
}
