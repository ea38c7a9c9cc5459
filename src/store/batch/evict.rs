//! Room for new nodes: where a limit is reached, nodes that were seen once give way.

use std::collections::{BTreeMap, HashSet, VecDeque};

use sqlx::AnyConnection;

use super::super::database::{Size, StoreLimits};
use super::super::sql::{Statement, integer, text};
use super::node_row::NodeRow;

/// How many candidates are read at a time.
const CANDIDATES: i64 = 300;

/// How much is kept, within a transaction.
#[derive(Debug)]
pub(super) struct EvictionRoom {
    pub(super) nodes: i64,
    pub(super) bytes: i64,
    limits: StoreLimits,
    /// The nodes of this batch that are known: they have just been seen.
    kept: HashSet<String>,
    /// The oldest nodes that were seen once; none until they are needed.
    candidates: Option<VecDeque<EvictionCandidate>>,
    evicted: Vec<i64>,
}

#[derive(Debug)]
struct EvictionCandidate {
    id: i64,
    bytes: i64,
}

impl EvictionRoom {
    pub(super) fn new((nodes, bytes): (i64, i64), limits: StoreLimits) -> Self {
        Self { nodes, bytes, limits, kept: HashSet::new(), candidates: None, evicted: Vec::new() }
    }

    /// Notes nodes that are not evicted.
    pub(super) fn keep(&mut self, names: impl Iterator<Item = String>) {
        self.kept.extend(names);
    }

    /// Makes room for a row; returns whether there is room.
    pub(super) async fn make(
        &mut self,
        connection: &mut AnyConnection,
        name: &str,
        before: Option<&NodeRow>,
        row: &NodeRow,
        batch: &mut BTreeMap<&str, NodeRow>,
    ) -> Result<bool, sqlx::Error> {
        let added = i64::from(before.is_none());
        let grown = row.bytes() - before.map_or(0, NodeRow::bytes);
        if exceeds(row.bytes(), self.limits.bytes) {
            return Ok(false);
        }
        while exceeds(self.nodes + added, self.limits.nodes)
            || (grown > 0 && exceeds(self.bytes + grown, self.limits.bytes))
        {
            if let Some(oldest) = self.next_candidate(connection).await? {
                self.bytes -= oldest.bytes;
                self.nodes -= 1;
                self.evicted.push(oldest.id);
            } else if let Some(oldest) = oldest_new(batch, name) {
                let dropped = batch.remove(oldest.as_str());
                self.bytes -= dropped.map_or(0, |it| it.bytes());
                self.nodes -= 1;
            } else {
                return Ok(false);
            }
        }
        self.nodes += added;
        self.bytes += grown;
        Ok(true)
    }

    async fn next_candidate(
        &mut self,
        connection: &mut AnyConnection,
    ) -> Result<Option<EvictionCandidate>, sqlx::Error> {
        if self.candidates.is_none() {
            let oldest = Statement::new(
                "SELECT id, stored_bytes, name FROM nodes WHERE settled = 0 \
                 ORDER BY last_seen, name LIMIT ",
            );
            let rows = oldest.value(CANDIDATES).fetch(connection).await?;
            let mut candidates = VecDeque::with_capacity(rows.len());
            for row in rows {
                if !self.kept.contains(&text(&row, 2)?) {
                    let (id, bytes) = (integer(&row, 0)?, integer(&row, 1)?);
                    candidates.push_back(EvictionCandidate { id, bytes });
                }
            }
            self.candidates = Some(candidates);
        }
        Ok(self.candidates.as_mut().and_then(VecDeque::pop_front))
    }

    /// Deletes the nodes that give way.
    pub(super) async fn evict(
        &mut self,
        connection: &mut AnyConnection,
    ) -> Result<(), sqlx::Error> {
        delete_nodes(connection, &std::mem::take(&mut self.evicted)).await
    }

    pub(super) fn size(&self) -> Size {
        let count = |it: i64| u64::try_from(it).unwrap_or_default();
        Size { nodes: count(self.nodes), bytes: count(self.bytes) }
    }
}

fn exceeds(count: i64, limit: u64) -> bool {
    u64::try_from(count).unwrap_or_default() > limit
}

/// Returns the node of a batch that came first among those that were never seen before.
fn oldest_new(batch: &BTreeMap<&str, NodeRow>, but: &str) -> Option<String> {
    let new = batch.iter().filter(|(name, it)| it.id.is_none() && !it.is_settled && **name != but);
    new.min_by_key(|(name, it)| (it.last_seen, **name)).map(|(name, _)| (*name).to_owned())
}

/// Deletes nodes with all that is known of them.
pub(in crate::store) async fn delete_nodes(
    connection: &mut AnyConnection,
    ids: &[i64],
) -> Result<(), sqlx::Error> {
    if ids.is_empty() {
        return Ok(());
    }
    for from in [
        "DELETE FROM facts WHERE node IN ",
        "DELETE FROM changes WHERE node IN ",
        "DELETE FROM nodes WHERE id IN ",
    ] {
        Statement::new(from).list(ids.iter().copied()).execute(connection).await?;
    }
    Ok(())
}
