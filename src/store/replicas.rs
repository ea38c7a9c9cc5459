//! The daemons that share a store, and what the store counts of itself.

use std::collections::BTreeMap;

use jiff::Timestamp;
use sqlx::any::AnyRow;

use super::database::Database;
use super::error::StoreError;
use super::listing::time;
use super::sql::{Statement, integer, maybe_bytes, text};
use super::transition::read_commit;
use crate::model::CommitId;

/// How many replicas are listed at most, those seen last.
const MOST: i64 = 64;

/// How many characters a name has at most.
const LONGEST_NAME: usize = 64;

/// The microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// The name of a daemon for people: without control characters, which PostgreSQL does not hold all of, and short.
///
/// Other text is changed so, not rejected: no daemon stops for its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplicaName(String);

impl ReplicaName {
    /// Takes what a name can have of a text.
    pub fn of(text: &str) -> Self {
        Self(text.chars().filter(|it| !it.is_control()).take(LONGEST_NAME).collect())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A daemon, as it says itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReplica {
    /// Made at each start.
    pub id: String,
    /// Its name for people.
    pub name: ReplicaName,
    /// Its version.
    pub version: String,
    /// The commit that answers there.
    pub commit: Option<CommitId>,
    /// When it started, by its own clock.
    pub started_at: Timestamp,
    /// When it said so, by its own clock.
    pub seen_at: Timestamp,
}

/// How many answers changed on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedAnswers {
    /// When the day began, in UTC.
    pub day: Timestamp,
    /// How many changes of nodes' answers, first answers not counted.
    pub changes: u64,
}

/// How much a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreSize {
    /// How many nodes.
    pub nodes: u64,
    /// How many bytes of check-ins, compressed.
    pub bytes: u64,
}

impl Database {
    /// Writes what a daemon says of itself, removes those that were not seen since a time, and returns all.
    pub(super) fn note_replica(
        &self,
        own: &StoredReplica,
        expired: Timestamp,
    ) -> Result<Vec<StoredReplica>, StoreError> {
        self.connections.write(async |connection| {
            let failed = self.connections.failed("written");
            let row = vec![
                own.id.as_str().into(),
                own.name.as_str().into(),
                own.version.as_str().into(),
                own.commit.map(|it| it.as_bytes().to_vec()).into(),
                own.started_at.as_microsecond().into(),
                own.seen_at.as_microsecond().into(),
            ];
            let columns =
                "INSERT INTO replicas (id, name, version, commit_id, started_at, seen_at)";
            let note = Statement::new(columns).rows([row]).text(
                " ON CONFLICT (id) DO UPDATE SET commit_id = excluded.commit_id, seen_at = excluded.seen_at",
            );
            note.execute(connection).await.map_err(&failed)?;
            let gone = Statement::new("DELETE FROM replicas WHERE seen_at < ");
            gone.value(expired.as_microsecond()).execute(connection).await.map_err(&failed)?;
            let columns = "SELECT id, name, version, commit_id, started_at, seen_at FROM replicas ORDER BY seen_at DESC, id LIMIT ";
            let rows = Statement::new(columns).value(MOST).fetch(connection).await;
            let read = rows.and_then(|rows| rows.iter().map(replica).collect());
            read.map_err(&failed)
        })
    }

    /// Removes a daemon that stops.
    pub(super) fn forget_replica(&self, id: &str) -> Result<(), StoreError> {
        self.connections.write(async |connection| {
            let gone = Statement::new("DELETE FROM replicas WHERE id = ").value(id);
            let failed = self.connections.failed("written");
            gone.execute(connection).await.map(drop).map_err(failed)
        })
    }

    /// Counts the changes of answers a day, from the day of a time until now; days without any are left out. What was
    /// noted ahead of the clock counts as of today.
    pub(super) fn changes_by_day(
        &self,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Vec<ChangedAnswers>, StoreError> {
        self.connections.read(async |connection| {
            let first = since.as_microsecond().div_euclid(DAY) * DAY;
            let counted = Statement::new(
                "SELECT time / 86400000000 AS day, COUNT(*) FROM changes WHERE time >= ",
            );
            let counted = counted
                .value(first)
                .text(" AND commit_before IS NOT NULL GROUP BY day ORDER BY day");
            let rows = counted.fetch(connection).await?;
            let today = now.as_microsecond().div_euclid(DAY);
            let mut days: BTreeMap<i64, u64> = BTreeMap::new();
            for row in &rows {
                let changes = u64::try_from(integer(row, 1)?).unwrap_or_default();
                *days.entry(integer(row, 0)?.min(today)).or_default() += changes;
            }
            let counted = days.into_iter();
            let counted = counted.map(|(day, changes)| {
                Ok(ChangedAnswers { day: time(day.saturating_mul(DAY))?, changes })
            });
            counted.collect()
        })
    }
}

fn replica(row: &AnyRow) -> Result<StoredReplica, sqlx::Error> {
    Ok(StoredReplica {
        id: text(row, 0)?,
        name: ReplicaName::of(&text(row, 1)?),
        version: text(row, 2)?,
        commit: maybe_bytes(row, 3)?.as_deref().and_then(read_commit),
        started_at: time(integer(row, 4)?)?,
        seen_at: time(integer(row, 5)?)?,
    })
}
