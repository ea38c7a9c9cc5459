//! How many nodes there are of each kind.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use sqlx::AnyConnection;

use super::batch::{cause_number, state_number};
use super::database::Database;
use super::error::StoreError;
use super::sql::{SqlValue, Statement, integer, maybe_bytes, maybe_integer, text};
use super::transition::read_commit;
use crate::answer::{ChangeCause, NodeState};
use crate::model::{CommitId, GroupId};

/// How many commits are counted one by one.
const FEW_COMMITS: usize = 4;

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
            let mut counts = StoredNodeCounts::default();
            let number = |it: i64| u64::try_from(it).unwrap_or_default();
            let all = Statement::new("SELECT COUNT(*) FROM nodes");
            if let Some(row) = all.first(connection).await? {
                counts.total = number(integer(&row, 0)?);
            }
            let silent = Statement::new("SELECT COUNT(*) FROM nodes WHERE last_seen < ")
                .value(silent_since.as_microsecond());
            if let Some(row) = silent.first(connection).await? {
                counts.silent = number(integer(&row, 0)?);
            }
            // Many nodes share an answer, whose state is looked up once.
            let states = Statement::new(
                "SELECT a.state, CAST(SUM(c.nodes) AS BIGINT) FROM (SELECT answer, COUNT(*) AS nodes FROM nodes WHERE answer IS NOT NULL GROUP BY answer) c JOIN answers a ON a.id = c.answer GROUP BY a.state",
            );
            for row in states.fetch(connection).await? {
                let state = integer(&row, 0)?;
                let state = NodeState::ALL.into_iter().find(|it| state_number(*it) == state);
                if let Some(state) = state {
                    counts.states.insert(state, number(integer(&row, 1)?));
                }
            }
            counts.commits = commit_counts(connection).await?;
            let causes = [ChangeCause::Commit, ChangeCause::Both].map(cause_number);
            let moved = Statement::new(
                "SELECT commit_after, COUNT(DISTINCT node) FROM changes WHERE time >= ",
            )
            .value(moved_since.as_microsecond())
            .text(" AND cause IN ")
            .list(causes)
            .text(" GROUP BY commit_after");
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
        self.connections.read_together(async |connection| commit_counts(connection).await)
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

    /// Counts the nodes whose last answer has a group, for each group.
    pub(super) fn members(&self) -> Result<BTreeMap<GroupId, u64>, StoreError> {
        self.connections.read_together(async |connection| {
            let counted = Statement::new(
                "SELECT g.group_id, CAST(SUM(c.nodes) AS BIGINT) FROM answer_groups g JOIN (SELECT answer, COUNT(*) AS nodes FROM nodes WHERE answer IS NOT NULL GROUP BY answer) c ON c.answer = g.answer GROUP BY g.group_id",
            );
            let mut members = BTreeMap::new();
            for row in counted.fetch(connection).await? {
                if let (Ok(group), Some(nodes)) = (text(&row, 0)?.parse(), maybe_integer(&row, 1)?) {
                    members.insert(group, u64::try_from(nodes).unwrap_or_default());
                }
            }
            Ok(members)
        })
    }
}

/// Counts the nodes by the commit that answered them last.
async fn commit_counts(
    connection: &mut AnyConnection,
) -> Result<BTreeMap<CommitId, u64>, sqlx::Error> {
    let number = |it: i64| u64::try_from(it).unwrap_or_default();
    let distinct = "SELECT DISTINCT commit_id FROM nodes WHERE commit_id IS NOT NULL";
    let mut commits = Vec::new();
    for row in Statement::new(distinct).fetch(connection).await? {
        commits.extend(maybe_bytes(&row, 0)?.as_deref().and_then(read_commit));
    }
    let mut counts = BTreeMap::new();
    if commits.len() <= FEW_COMMITS {
        // Comparing is several times as fast as sorting 100,000 nodes.
        for commit in commits {
            let count = Statement::new("SELECT COUNT(*) FROM nodes WHERE commit_id = ")
                .value(commit.as_bytes().to_vec());
            if let Some(row) = count.first(connection).await? {
                counts.insert(commit, number(integer(&row, 0)?));
            }
        }
        return Ok(counts);
    }
    let all = "SELECT commit_id, COUNT(*) FROM nodes GROUP BY commit_id";
    for row in Statement::new(all).fetch(connection).await? {
        if let Some(commit) = maybe_bytes(&row, 0)?.as_deref().and_then(read_commit) {
            counts.insert(commit, number(integer(&row, 1)?));
        }
    }
    Ok(counts)
}
