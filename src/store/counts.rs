//! How many nodes there are of each kind.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sqlx::AnyConnection;

use super::batch::state_number;
use super::database::Database;
use super::error::StoreError;
use super::sql::{Dialect, SqlValue, Statement, integer, maybe_bytes, maybe_integer, text};
use super::tally::read_tally;
use super::transition::read_commit;
use crate::answer::NodeState;
use crate::model::{CommitId, GroupId};

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

    /// Returns those of some names that nodes have.
    pub(super) fn known(&self, names: &[String]) -> Result<BTreeSet<String>, StoreError> {
        self.connections.read_together(async |connection| {
            let mut known = BTreeSet::new();
            for some in names.chunks(500) {
                let found = Statement::new("SELECT name FROM nodes WHERE name IN ");
                let found = found.list(some.iter().map(|it| SqlValue::from(it.as_str())));
                for row in found.fetch(connection).await? {
                    known.insert(text(&row, 0)?);
                }
            }
            Ok(known)
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
