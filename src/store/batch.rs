//! Writing check-ins: one transaction for many nodes.

mod answers;
mod changes;
mod evict;
mod late;
mod node_row;

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlx::AnyConnection;

use super::database::{Database, Size, StoreLimits};
use super::error::StoreError;
use super::forgotten::Deletions;
use super::prepared::{Preparation, PreparedCheckIn, PreparedFacts, PreparedNode};
use super::queue::Keeping;
use super::said::{SaidCheckIn, SaidPart, is_before};
use super::sql::Dialect;
use super::tally::TallyChange;
use super::totals::{lock_totals, save_totals};

pub(super) use answers::state_number;
pub(super) use changes::cause_number;
pub(super) use evict::delete_nodes;

use answers::ContentIds;
use changes::{CauseFinder, FreshChange};
use evict::EvictionRoom;
use node_row::NodeRow;

/// How long after it was first seen a node must come back to be settled, in microseconds.
const SETTLES_AFTER: i64 = 600_000_000;

/// How far apart the times of requests are that come in another order than they were noted, in microseconds.
const ONE_MOMENT: i64 = 60_000_000;

/// How many bytes of facts are in memory before those of known nodes are written, where a part of them was read again.
const COMPLETED: usize = 16 << 20;

/// What became of a batch.
#[derive(Debug, Default)]
pub(super) struct WriteOutcomes {
    /// The names of the nodes for whose facts the limits leave no room.
    pub(super) refused: Vec<String>,
    /// How much is kept now.
    pub(super) size: Size,
    /// Whether something that was known of a node is not kept any more.
    pub(super) has_removed: bool,
}

impl Database {
    /// Writes check-ins and syncs them, and large answers before them.
    pub(super) fn write(
        &self,
        nodes: &[PreparedNode],
        preparation: &Preparation,
        limits: &StoreLimits,
    ) -> Result<WriteOutcomes, StoreError> {
        self.save_large_answers(nodes)?;
        self.write_kept(async |connection| {
            let failed = self.connections.failed("written");
            let dialect = &self.connections.dialect;
            write(connection, dialect, nodes, preparation, limits).await.map_err(failed)
        })
    }
}

async fn write(
    connection: &mut AnyConnection,
    dialect: &Dialect,
    nodes: &[PreparedNode],
    preparation: &Preparation,
    limits: &StoreLimits,
) -> Result<WriteOutcomes, sqlx::Error> {
    let mut room = EvictionRoom::new(lock_totals(connection, dialect).await?, *limits);
    let names: Vec<&str> = nodes.iter().map(|it| it.name.as_str()).collect();
    let mut known = NodeRow::load(connection, &names).await?;
    room.keep(known.keys().cloned());
    let deletions = Deletions::load(connection, dialect, &names, preparation.writer).await?;
    let mut tally = TallyChange::default();
    let contents = ContentIds::save(connection, nodes).await?;
    let mut causes = CauseFinder::new(preparation);
    let mut changes = Vec::new();
    let mut changed: BTreeMap<&str, NodeRow> = BTreeMap::new();
    let writer = late::writer(dialect, preparation.writer);
    let mut written = WriteOutcomes::default();
    let mut completed = 0;
    for node in nodes {
        let name = node.name.as_str();
        let before = known.remove(name);
        let before_counted = before.as_ref().map(NodeRow::counted);
        let mut noted = NotedNode::of(before.clone());
        for check_in in deletions.left(node) {
            noted.take(connection, name, check_in, writer, &contents, &mut causes).await?;
        }
        let Some(mut row) = noted.row else { continue };
        if !room.make(connection, name, before.as_ref(), &row, &mut changed).await? {
            written.refused.push(name.to_owned());
            // A node that is known stays so, with the facts that it had.
            let Some(before) = before else { continue };
            row.keep_facts_of(before);
        }
        if let Some(before) = before_counted {
            tally.add(before, -1);
        }
        completed += row.unsaved_facts().map_or(0, |it| it.text().len());
        changed.insert(name, row);
        // Parts that are completed by what is stored are counted nowhere else.
        if noted.is_completed && completed > COMPLETED {
            NodeRow::save_facts(connection, &mut changed).await?;
            completed = 0;
        }
        changes.extend(noted.changes.into_iter().map(|it| (name, it)));
    }
    room.evict(connection, dialect).await?;
    NodeRow::save(connection, &mut changed).await?;
    changes::save(connection, &changed, changes).await?;
    for row in changed.values() {
        tally.add(row.counted(), 1);
    }
    tally.save(connection, dialect).await?;
    written.has_removed = room.is_short || !written.refused.is_empty();
    written.size = room.size();
    save_totals(connection, (room.nodes, room.bytes)).await?;
    Ok(written)
}

/// A node while its check-ins of a batch are noted.
#[derive(Debug)]
struct NotedNode {
    row: Option<NodeRow>,
    changes: Vec<FreshChange>,
    /// Whether a part of its facts and trusted data was read again.
    is_completed: bool,
}

impl NotedNode {
    fn of(row: Option<NodeRow>) -> Self {
        Self { row, changes: Vec::new(), is_completed: false }
    }

    async fn take(
        &mut self,
        connection: &mut AnyConnection,
        name: &str,
        check_in: &PreparedCheckIn,
        writer: i64,
        contents: &ContentIds,
        causes: &mut CauseFinder<'_>,
    ) -> Result<(), sqlx::Error> {
        let mut next = self.row.take().unwrap_or_else(|| NodeRow::new(check_in.time()));
        let (parts, says) = (next.parts(), check_in.says());
        let is_late = next.id.is_some() && parts.overtook(&says, writer);
        let said = match is_late {
            true => parts.latest_part(&says),
            false => Some(check_in.row.said),
        };
        self.is_completed |= said.is_some_and(|it| it != SaidPart::Both);
        let said = match said {
            Some(said) => Some((said, next.completed(connection, &check_in.facts, said).await?)),
            None => None,
        };
        let said = said.as_ref().map(|(said, facts)| (*said, facts));
        let last_answered = next.last_answered().filter(|_| self.changes.is_empty());
        if is_late && last_answered.is_some_and(|it| is_before(&says, it)) {
            late::merge(connection, &mut next, check_in, contents).await?;
        } else {
            // It was answered so before another daemon answered, and is so again.
            let is_overtaken = parts.is_of_another(writer)
                && last_answered.is_some_and(|it| check_in.answered_at < it && it <= says.time);
            let mut since = check_in.answered_at;
            if is_overtaken {
                late::merge(connection, &mut next, check_in, contents).await?;
                since = says.time;
            }
            let change = answered(connection, (name, since), &mut next, check_in, contents, causes);
            self.changes.extend(change.await?);
        }
        if is_late {
            late::see(&mut next, check_in, said)?;
        } else if let Some((said, facts)) = said {
            next.writer = writer;
            see(&mut next, check_in, facts, said)?;
        }
        self.row = Some(next);
        Ok(())
    }
}

/// Notes what a check-in was answered; returns the change if that is another answer than before.
async fn answered(
    connection: &mut AnyConnection,
    (name, since): (&str, i64),
    row: &mut NodeRow,
    check_in: &PreparedCheckIn,
    contents: &ContentIds,
    causes: &mut CauseFinder<'_>,
) -> Result<Option<FreshChange>, sqlx::Error> {
    let Some(answer) = &check_in.answer else { return Ok(None) };
    let Some(id) = contents.answer(&answer.content) else { return Ok(None) };
    let mut change = None;
    if row.answer != Some(id) {
        // The order in which answers came counts, also when the clock was set back meanwhile.
        let earliest = row.since.map_or(i64::MIN, |it| it.saturating_add(1));
        let time = since.max(earliest);
        let at = (id, time);
        change = Some(causes.change(connection, name, row, check_in, answer, at).await?);
        row.answer = Some(id);
        row.since = Some(time);
    }
    row.answered_at = Some(check_in.time());
    row.commit = Some(answer.snapshot.commit.as_bytes().to_vec());
    row.take_inputs(check_in, answer, contents);
    Ok(change)
}

/// Notes that a node was seen, and what it said.
fn see(
    row: &mut NodeRow,
    check_in: &PreparedCheckIn,
    facts: &Arc<PreparedFacts>,
    said: SaidPart,
) -> std::io::Result<()> {
    let time = check_in.time();
    let came_back = time.saturating_sub(row.first_seen) >= SETTLES_AFTER;
    row.is_settled |= came_back || check_in.keeping == Keeping::Promised;
    // Seen first while the clock was ahead: it is to settle by the right time.
    row.first_seen = row.first_seen.min(time);
    // Requests of one moment can come in another order; what seems to be much later was seen before the clock
    // was set back.
    let is_of_one_moment = row.last_seen.saturating_sub(time) < ONE_MOMENT;
    if is_of_one_moment {
        row.last_seen = row.last_seen.max(time);
    } else {
        row.last_seen = time;
        // Its facts came before this.
        row.said = row.said.until(time.saturating_sub(1));
        row.answered_at = row.answered_at.map(|it| it.min(time));
    }
    let says =
        SaidCheckIn { has_facts: facts.has_facts(), is_bare: facts.is_bare(), ..check_in.says() };
    if row.parts().is_replaced_by(&says) {
        row.take_facts(check_in, facts, said)?;
    }
    Ok(())
}
