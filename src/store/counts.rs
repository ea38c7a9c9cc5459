//! How many nodes there are of each kind.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sqlx::AnyConnection;

use super::batch::state_number;
use super::database::Database;
use super::error::StoreError;
use super::sql::{Dialect, Statement, integer, maybe_bytes, maybe_integer, maybe_text, text};
use super::tally::read_tally;
use super::transition::read_commit;
use crate::answer::NodeState;
use crate::model::{CommitId, GroupId};

/// How many names are looked up by one statement.
const LOOKED_UP_TOGETHER: usize = 10_000;

/// Which nodes there are: as long as it is the same, no node came or went.
///
/// A new node has a larger id than all others. Where the newest is the same row as before, no other has come and
/// stayed; then the number tells whether one has gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetVersion {
    nodes: i64,
    /// The id of the newest, when it was seen first, and its name: a file may use the id of one that went again.
    newest: Option<(i64, i64, String)>,
}

/// How many nodes there are of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredNodeCounts {
    /// All.
    pub total: u64,
    /// By what came of the last classification.
    pub states: BTreeMap<NodeState, u64>,
    /// Nodes that were not seen since a time.
    pub silent: u64,
    /// By the commit that answered last.
    pub commits: BTreeMap<CommitId, u64>,
    /// By the commit that gave them another answer, of the changes since a time.
    pub moved: BTreeMap<CommitId, u64>,
}

impl Database {
    /// Counts the nodes; those that were not seen since the first time, and changes since the second.
    pub(super) fn counts(
        &self,
        silent_since: Timestamp,
        moved_since: Timestamp,
    ) -> Result<StoredNodeCounts, StoreError> {
        self.connections.read_together(async |connection| {
            let mut counts = tallied(connection, &self.connections.dialect).await?;
            // Both values of a column say nothing, and let the index that begins with it be searched.
            let silent =
                Statement::new("SELECT COUNT(*) FROM nodes WHERE settled IN (0, 1) AND last_seen < ")
                    .value(silent_since.as_microsecond());
            if let Some(row) = silent.first(connection).await? {
                counts.silent = number(integer(&row, 0)?);
            }
            // The causes that an index is for: a commit, alone or with other facts.
            let moved = Statement::new(
                "SELECT commit_after, COUNT(DISTINCT node) FROM changes WHERE cause IN (1, 3) AND time >= ",
            );
            let moved = moved.value(moved_since.as_microsecond()).text(" GROUP BY commit_after");
            for row in moved.fetch(connection).await? {
                if let Some(commit) = maybe_bytes(&row, 0)?.as_deref().and_then(read_commit) {
                    counts.moved.insert(commit, number(integer(&row, 1)?));
                }
            }
            Ok(counts)
        })
    }

    /// Counts the nodes by the commit that answered them last.
    pub(super) fn commit_counts(&self) -> Result<BTreeMap<CommitId, u64>, StoreError> {
        self.connections.read(async |connection| {
            Ok(tallied(connection, &self.connections.dialect).await?.commits)
        })
    }

    /// Returns which nodes there are, as one value.
    pub(super) fn fleet_version(&self) -> Result<FleetVersion, StoreError> {
        self.connections.read(async |connection| fleet_version(connection).await)
    }

    /// Returns those of some names that no node has, and which nodes there were.
    pub(super) fn unknown(
        &self,
        names: &[&str],
    ) -> Result<(BTreeSet<String>, FleetVersion), StoreError> {
        self.connections.read_together(async |connection| {
            let version = fleet_version(connection).await?;
            let mut unknown = BTreeSet::new();
            for some in names.chunks(LOOKED_UP_TOGETHER) {
                // One value: as many parameters take longer than the search. And no row for a node that is known.
                let some = serde_json::Value::from(some).to_string();
                let found = match self.connections.dialect {
                    Dialect::Sqlite => {
                        Statement::new("SELECT value FROM json_each(").value(&*some).text(")")
                    }
                    Dialect::Postgres => {
                        let list =
                            Statement::new("SELECT value FROM json_array_elements_text(CAST(");
                        list.value(&*some).text(" AS json))")
                    }
                };
                let found = found.text(
                    " AS asked WHERE NOT EXISTS (SELECT 1 FROM nodes WHERE name = asked.value)",
                );
                for row in found.fetch(connection).await? {
                    unknown.insert(text(&row, 0)?);
                }
            }
            Ok((unknown, version))
        })
    }

    /// Counts the nodes whose last answer has a group, for each group; none for those that only answers since a
    /// time had.
    pub(super) fn members(
        &self,
        matched_since: Option<Timestamp>,
    ) -> Result<BTreeMap<GroupId, u64>, StoreError> {
        self.connections.read_together(async |connection| {
            let mut members = BTreeMap::new();
            if let Some(since) = matched_since {
                // An answer was given until the change to the next one.
                let former = Statement::new(
                    "SELECT DISTINCT group_id FROM answer_groups WHERE answer IN \
                     (SELECT a.id FROM answers a WHERE EXISTS \
                     (SELECT 1 FROM changes c WHERE c.answer_before = a.id AND c.time >= ",
                );
                let former = former.value(since.as_microsecond()).text("))");
                for row in former.fetch(connection).await? {
                    if let Ok(group) = text(&row, 0)?.parse() {
                        members.insert(group, 0);
                    }
                }
            }
            let counted = Statement::new(
                "SELECT g.group_id, CAST(SUM(c.nodes) AS BIGINT) FROM answer_groups g JOIN (SELECT answer, COUNT(*) AS nodes FROM nodes WHERE answer IS NOT NULL GROUP BY answer) c ON c.answer = g.answer GROUP BY g.group_id",
            );
            for row in counted.fetch(connection).await? {
                if let (Ok(group), Some(nodes)) = (text(&row, 0)?.parse(), maybe_integer(&row, 1)?) {
                    members.insert(group, u64::try_from(nodes).unwrap_or_default());
                }
            }
            Ok(members)
        })
    }
}

/// Reads which nodes there are.
async fn fleet_version(connection: &mut AnyConnection) -> Result<FleetVersion, sqlx::Error> {
    let version = Statement::new(
        "SELECT t.nodes, n.id, n.first_seen, n.name FROM totals t \
         LEFT JOIN nodes n ON n.id = (SELECT MAX(id) FROM nodes) WHERE t.id = 1",
    );
    let Some(row) = version.first(connection).await? else { return Err(sqlx::Error::RowNotFound) };
    let newest = (maybe_integer(&row, 1)?, maybe_integer(&row, 2)?, maybe_text(&row, 3)?);
    let newest = match newest {
        (Some(id), Some(first_seen), Some(name)) => Some((id, first_seen, name)),
        _ => None,
    };
    Ok(FleetVersion { nodes: integer(&row, 0)?, newest })
}

/// Counts all nodes, by state and by commit.
async fn tallied(
    connection: &mut AnyConnection,
    dialect: &Dialect,
) -> Result<StoredNodeCounts, sqlx::Error> {
    let mut counts = StoredNodeCounts::default();
    for row in read_tally(connection, dialect).await? {
        let nodes = number(row.nodes);
        counts.total += nodes;
        let is_counted = |it: &NodeState| Some(state_number(*it)) == row.state;
        if let Some(state) = NodeState::ALL.into_iter().find(is_counted) {
            *counts.states.entry(state).or_default() += nodes;
        }
        if let Some(commit) = row.commit.as_deref().and_then(read_commit) {
            *counts.commits.entry(commit).or_default() += nodes;
        }
    }
    Ok(counts)
}

fn number(count: i64) -> u64 {
    u64::try_from(count).unwrap_or_default()
}
