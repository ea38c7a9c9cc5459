//! Nodes that clients deleted: where several daemons write, another one may still have a check-in from before, which must
//! not bring the node back.

use std::collections::HashMap;

use jiff::Timestamp;
use sqlx::AnyConnection;

use super::database::Database;
use super::error::StoreError;
use super::prepared::{PreparedCheckIn, PreparedNode, WriterId};
use super::queue::Keeping;
use super::said::is_before;
use super::sql::{Dialect, Statement, integer, text};

/// How long a deletion is known, in microseconds: a daemon that does not reach the database for longer, and then does,
/// writes what it has.
const KNOWN_FOR: i64 = 7 * 86_400_000_000;

/// That a client deleted a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deletion {
    pub(super) time: Timestamp,
    /// Which daemon deletes it. What waits there is dropped there.
    pub(super) writer: WriterId,
}

impl Deletion {
    /// Notes the deletion of a node.
    pub(super) async fn note(
        self,
        connection: &mut AnyConnection,
        dialect: &Dialect,
        name: &str,
    ) -> Result<(), sqlx::Error> {
        if *dialect == Dialect::Sqlite {
            return Ok(());
        }
        let row = vec![name.into(), self.time.as_microsecond().into(), self.writer.number().into()];
        Statement::new("INSERT INTO forgotten_nodes (name, time, writer)")
            .rows([row])
            .text(
                // One that waited longer to be written may be earlier.
                " ON CONFLICT (name) DO UPDATE SET writer = excluded.writer, \
                 time = GREATEST(forgotten_nodes.time, excluded.time)",
            )
            .execute(connection)
            .await
            .map(drop)
    }
}

/// When other daemons deleted some nodes, in microseconds since 1970.
#[derive(Debug, Default)]
pub(super) struct Deletions(HashMap<String, i64>);

impl Deletions {
    /// Reads the deletions of some nodes.
    pub(super) async fn load(
        connection: &mut AnyConnection,
        dialect: &Dialect,
        names: &[&str],
        writer: WriterId,
    ) -> Result<Self, sqlx::Error> {
        if *dialect == Dialect::Sqlite {
            return Ok(Self::default());
        }
        let noted = Statement::new("SELECT name, time FROM forgotten_nodes WHERE writer <> ")
            .value(writer.number())
            .text(" AND name IN ")
            .list(names.iter().copied());
        let rows = noted.fetch(connection).await?;
        let times = rows.iter().map(|row| Ok((text(row, 0)?, integer(row, 1)?)));
        times.collect::<Result<_, sqlx::Error>>().map(Self)
    }

    /// Returns the check-ins of a node that came after its deletion.
    pub(super) fn left<'n>(
        &self,
        node: &'n PreparedNode,
    ) -> impl Iterator<Item = &'n PreparedCheckIn> + use<'n> {
        let deleted = self.0.get(&node.name).copied();
        let is_gone = move |it: &PreparedCheckIn| {
            // An upload that waits to be answered is written, as it is by the daemon that deletes the node.
            it.keeping == Keeping::Noted
                && deleted.is_some_and(|deleted| is_before(&it.says(), deleted))
        };
        node.check_ins.iter().filter(move |it| !is_gone(it))
    }
}

impl Database {
    /// Drops deletions that nothing waits from any more; returns how many.
    pub(super) fn drop_deletions(&self, now: Timestamp) -> Result<usize, StoreError> {
        if self.connections.dialect == Dialect::Sqlite {
            return Ok(0);
        }
        self.connections.write(async |connection| {
            let before = now.as_microsecond().saturating_sub(KNOWN_FOR);
            let old = Statement::new("DELETE FROM forgotten_nodes WHERE time < ").value(before);
            let count =
                old.execute(connection).await.map_err(self.connections.failed("written"))?;
            Ok(usize::try_from(count).unwrap_or(usize::MAX))
        })
    }
}
