//! Room for new nodes: where a limit is reached, nodes that were seen once give way.

use std::collections::{BTreeMap, HashSet, VecDeque};

use sqlx::AnyConnection;

use super::super::database::{Size, StoreLimits};
use super::super::sql::{Dialect, Statement, integer, text};
use super::super::tally::TallyChange;
use super::node_row::NodeRow;

/// How many candidates are read at a time.
const CANDIDATES: i64 = 300;

/// How many nodes one statement deletes: it has a parameter for each, and databases limit those.
const DELETED_TOGETHER: usize = 1000;

/// How much is kept, within a transaction.
#[derive(Debug)]
pub(super) struct EvictionRoom {
    pub(super) nodes: i64,
    pub(super) bytes: i64,
    limits: StoreLimits,
    /// The nodes of this batch that are known: they have just been seen.
    kept: HashSet<String>,
    /// The oldest nodes that were seen once, as far as they are read.
    candidates: VecDeque<EvictionCandidate>,
    /// When the last of them that was read was last seen, and its name; none if there are no more.
    read_up_to: Option<(i64, String)>,
    evicted: Vec<i64>,
    /// Whether nodes gave way, stored ones or such of this batch.
    pub(super) is_short: bool,
}

/// What a row adds to what is kept.
#[derive(Clone, Copy, Debug)]
struct Growth {
    nodes: i64,
    bytes: i64,
}

#[derive(Debug)]
struct EvictionCandidate {
    id: i64,
    bytes: i64,
}

impl EvictionRoom {
    pub(super) fn new((nodes, bytes): (i64, i64), limits: StoreLimits) -> Self {
        Self {
            nodes,
            bytes,
            limits,
            kept: HashSet::new(),
            candidates: VecDeque::new(),
            read_up_to: Some((i64::MIN, String::new())),
            evicted: Vec::new(),
            is_short: false,
        }
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
        let growth = Growth {
            nodes: i64::from(before.is_none()),
            bytes: row.bytes() - before.map_or(0, NodeRow::bytes),
        };
        if growth.nodes == 0 && growth.bytes <= 0 {
            self.bytes += growth.bytes;
            return Ok(true);
        }
        if exceeds(row.bytes(), self.limits.bytes) {
            return Ok(false);
        }
        // Where all that can give way is not enough, nothing does.
        let (mut stored, mut new) = (Vec::new(), Vec::new());
        let (mut nodes, mut bytes) = (self.nodes + growth.nodes, self.bytes + growth.bytes);
        while (growth.nodes > 0 && exceeds(nodes, self.limits.nodes))
            || (growth.bytes > 0 && exceeds(bytes, self.limits.bytes))
        {
            if let Some(oldest) = self.next_candidate(connection).await? {
                bytes -= oldest.bytes;
                stored.push(oldest);
            } else if let Some((oldest, size)) = oldest_new(batch, name, &new) {
                bytes -= size;
                new.push(oldest);
            } else {
                for candidate in stored.into_iter().rev() {
                    self.candidates.push_front(candidate);
                }
                return Ok(false);
            }
            nodes -= 1;
        }
        self.is_short |= !stored.is_empty() || !new.is_empty();
        self.evicted.extend(stored.into_iter().map(|it| it.id));
        batch.retain(|name, _| !new.iter().any(|it| it == name));
        (self.nodes, self.bytes) = (nodes, bytes);
        Ok(true)
    }

    async fn next_candidate(
        &mut self,
        connection: &mut AnyConnection,
    ) -> Result<Option<EvictionCandidate>, sqlx::Error> {
        while self.candidates.is_empty() {
            let Some((last_seen, name)) = &self.read_up_to else { return Ok(None) };
            let oldest = Statement::new(
                "SELECT id, stored_bytes, name, last_seen FROM nodes WHERE settled = 0 \
                 AND (last_seen, name) > (",
            );
            let oldest = oldest.value(*last_seen).text(", ").value(name.as_str());
            let oldest = oldest.text(") ORDER BY last_seen, name LIMIT ").value(CANDIDATES);
            self.read_up_to = None;
            for row in oldest.fetch(connection).await? {
                let name = text(&row, 2)?;
                if !self.kept.contains(&name) {
                    let (id, bytes) = (integer(&row, 0)?, integer(&row, 1)?);
                    self.candidates.push_back(EvictionCandidate { id, bytes });
                }
                self.read_up_to = Some((integer(&row, 3)?, name));
            }
        }
        Ok(self.candidates.pop_front())
    }

    /// Deletes the nodes that give way.
    pub(super) async fn evict(
        &mut self,
        connection: &mut AnyConnection,
        dialect: &Dialect,
    ) -> Result<(), sqlx::Error> {
        delete_nodes(connection, dialect, &std::mem::take(&mut self.evicted)).await
    }

    pub(super) fn size(&self) -> Size {
        let count = |it: i64| u64::try_from(it).unwrap_or_default();
        Size { nodes: count(self.nodes), bytes: count(self.bytes) }
    }
}

fn exceeds(count: i64, limit: u64) -> bool {
    u64::try_from(count).unwrap_or_default() > limit
}

/// Returns the node of a batch that came first among those that were never seen before, and its bytes.
fn oldest_new(
    batch: &BTreeMap<&str, NodeRow>,
    but: &str,
    gone: &[String],
) -> Option<(String, i64)> {
    let is_gone = |name: &str| name == but || gone.iter().any(|it| it == name);
    let new = batch.iter().filter(|(_, it)| it.id.is_none() && !it.is_settled);
    let new = new.filter(|(name, _)| !is_gone(name));
    new.min_by_key(|(name, it)| (it.last_seen, **name))
        .map(|(name, it)| ((*name).to_owned(), it.bytes()))
}

/// Deletes nodes with all that is known of them.
pub(in crate::store) async fn delete_nodes(
    connection: &mut AnyConnection,
    dialect: &Dialect,
    ids: &[i64],
) -> Result<(), sqlx::Error> {
    for some in ids.chunks(DELETED_TOGETHER) {
        TallyChange::save_deletion(connection, dialect, some).await?;
        for from in [
            "DELETE FROM facts WHERE node IN ",
            "DELETE FROM changes WHERE node IN ",
            "DELETE FROM nodes WHERE id IN ",
        ] {
            Statement::new(from).list(some.iter().copied()).execute(connection).await?;
        }
    }
    Ok(())
}
