//! How many nodes there are by commit and state.
//!
//! A file keeps the counts with every write, so that counting reads no nodes. PostgreSQL counts the nodes: several
//! daemons write there, also of versions that keep no counts.

use std::collections::{BTreeMap, HashMap};

use sqlx::AnyConnection;

use super::sql::{Dialect, Statement, integer, maybe_bytes, maybe_integer};

/// What stands for the commit of nodes that none answered.
const NO_COMMIT: &[u8] = b"";

/// What stands for the state of nodes without an answer.
const NO_STATE: i64 = -1;

/// The last answer of a node, as it is counted: its commit and its id.
pub(super) type CountedAnswer = (Option<Vec<u8>>, Option<i64>);

/// How a transaction changes the counts.
#[derive(Debug, Default)]
pub(super) struct TallyChange(BTreeMap<CountedAnswer, i64>);

/// How many nodes a commit answered last in a state.
#[derive(Debug)]
pub(super) struct TallyRow {
    pub(super) commit: Option<Vec<u8>>,
    /// The number of the state.
    pub(super) state: Option<i64>,
    pub(super) nodes: i64,
}

impl TallyChange {
    /// Counts nodes.
    pub(super) fn add(&mut self, answer: CountedAnswer, nodes: i64) {
        *self.0.entry(answer).or_default() += nodes;
    }

    /// Notes that nodes are deleted next.
    pub(super) async fn save_deletion(
        connection: &mut AnyConnection,
        dialect: &Dialect,
        ids: &[i64],
    ) -> Result<(), sqlx::Error> {
        if *dialect == Dialect::Postgres {
            return Ok(());
        }
        let deleted = Statement::new("SELECT commit_id, answer, COUNT(*) FROM nodes WHERE id IN ")
            .list(ids.iter().copied())
            .text(" GROUP BY commit_id, answer");
        let mut change = Self::default();
        for row in deleted.fetch(connection).await? {
            let answer = (maybe_bytes(&row, 0)?, maybe_integer(&row, 1)?);
            change.add(answer, -integer(&row, 2)?);
        }
        change.save(connection, dialect).await
    }

    /// Writes the counts. The answers are still there.
    pub(super) async fn save(
        mut self,
        connection: &mut AnyConnection,
        dialect: &Dialect,
    ) -> Result<(), sqlx::Error> {
        self.0.retain(|_, change| *change != 0);
        if *dialect == Dialect::Postgres || self.0.is_empty() {
            return Ok(());
        }
        let states = self.states(connection).await?;
        let mut counts: BTreeMap<(Vec<u8>, i64), i64> = BTreeMap::new();
        for ((commit, answer), change) in self.0 {
            let state = answer.and_then(|it| states.get(&it).copied()).unwrap_or(NO_STATE);
            let commit = commit.unwrap_or_else(|| NO_COMMIT.to_vec());
            *counts.entry((commit, state)).or_default() += change;
        }
        counts.retain(|_, change| *change != 0);
        if counts.is_empty() {
            return Ok(());
        }
        let rows = counts
            .into_iter()
            .map(|((commit, state), change)| vec![commit.into(), state.into(), change.into()]);
        let add = Statement::new("INSERT INTO node_counts (commit_id, state, nodes)")
            .rows(rows)
            .text(" ON CONFLICT (commit_id, state)")
            .text(" DO UPDATE SET nodes = node_counts.nodes + excluded.nodes");
        add.execute(connection).await?;
        Statement::new("DELETE FROM node_counts WHERE nodes = 0").execute(connection).await?;
        Ok(())
    }

    /// Returns the states of the answers that are counted.
    async fn states(
        &self,
        connection: &mut AnyConnection,
    ) -> Result<HashMap<i64, i64>, sqlx::Error> {
        let mut answers: Vec<i64> = self.0.keys().filter_map(|(_, answer)| *answer).collect();
        answers.sort_unstable();
        answers.dedup();
        let mut states = HashMap::new();
        for some in answers.chunks(500) {
            let found = Statement::new("SELECT id, state FROM answers WHERE id IN ");
            for row in found.list(some.iter().copied()).fetch(connection).await? {
                states.insert(integer(&row, 0)?, integer(&row, 1)?);
            }
        }
        Ok(states)
    }
}

/// Returns whether all nodes of a file are counted.
pub(super) async fn is_counted(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    let counted = Statement::new(
        "SELECT COALESCE(SUM(nodes), 0) - (SELECT COUNT(*) FROM nodes) FROM node_counts",
    );
    let row = counted.first(connection).await?;
    Ok(row.as_ref().map_or(Ok(0), |it| integer(it, 0))? == 0)
}

/// Counts the nodes of a file.
pub(super) async fn recount(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    Statement::new("DELETE FROM node_counts").execute(connection).await?;
    let counted = "INSERT INTO node_counts (commit_id, state, nodes) \
         SELECT COALESCE(commit_id, x''), COALESCE(state, -1), SUM(counted) \
         FROM (SELECT commit_id, answer, COUNT(*) AS counted FROM nodes GROUP BY commit_id, answer) \
         LEFT JOIN answers ON id = answer GROUP BY 1, 2";
    Statement::new(counted).execute(connection).await.map(drop)
}

/// Returns the counts.
pub(super) async fn read_tally(
    connection: &mut AnyConnection,
    dialect: &Dialect,
) -> Result<Vec<TallyRow>, sqlx::Error> {
    let all = match dialect {
        Dialect::Sqlite => "SELECT commit_id, state, nodes FROM node_counts",
        Dialect::Postgres => {
            "SELECT n.commit_id, a.state, COUNT(*) FROM nodes n LEFT JOIN answers a ON a.id = n.answer GROUP BY n.commit_id, a.state"
        }
    };
    let rows = Statement::new(all).fetch(connection).await?;
    let row = |row| {
        Ok(TallyRow {
            commit: maybe_bytes(row, 0)?.filter(|it| it != NO_COMMIT),
            state: maybe_integer(row, 1)?.filter(|it| *it != NO_STATE),
            nodes: integer(row, 2)?,
        })
    };
    rows.iter().map(row).collect()
}
