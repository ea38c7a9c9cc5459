//! What waits to be written.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::check_in::{FactsPresence, Row};
use super::error::StoreError;

/// How many check-ins of one node wait, if each was answered differently than the one before.
const OF_ONE_NODE: usize = 16;

/// Reports to the waiting request that a check-in is kept.
pub(super) type Receipt = oneshot::Sender<Result<(), StoreError>>;

/// A row that is to be written.
#[derive(Clone, Debug)]
pub(super) struct Fresh {
    pub(super) row: Arc<Row>,
    pub(super) keeping: Keeping,
    /// When the node was first answered so, of the check-ins whose place this one took; in microseconds
    /// since 1970.
    pub(super) answered_at: i64,
}

impl Fresh {
    pub(super) fn new(row: Row, keeping: Keeping) -> Self {
        let answered_at = row.origin.time.as_microsecond();
        Self { row: Arc::new(row), keeping, answered_at }
    }
}

/// What was said about the keeping of a check-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keeping {
    /// Nothing.
    Noted,
    /// An acknowledgement says that it is on disk.
    Promised,
}

/// A check-in that waits, and the room in the queue that it takes.
#[derive(Debug)]
pub(super) struct QueuedCheckIn {
    pub(super) fresh: Fresh,
    /// Given back when the check-in is dropped.
    _room: OwnedSemaphorePermit,
}

/// The check-ins of a node that wait, in the order in which they came.
pub(super) type QueuedNode = Vec<QueuedCheckIn>;

/// What waits to be written, by name.
#[derive(Debug, Default)]
pub(super) struct CheckInQueue {
    nodes: BTreeMap<String, QueuedNode>,
    receipts: Vec<(String, Receipt)>,
    /// The check-ins that are being written, for reads meanwhile.
    writing: BTreeMap<String, Fresh>,
    pub(super) urgency: Urgency,
    pub(super) stopping: bool,
}

/// Whether more is collected before the next write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Urgency {
    /// More is collected.
    #[default]
    CanWait,
    /// A request waits for the write.
    AtOnce,
}

/// What is written in one transaction.
#[derive(Debug, Default)]
pub(super) struct WriteBatch {
    pub(super) nodes: BTreeMap<String, QueuedNode>,
    receipts: Vec<(String, Receipt)>,
}

impl CheckInQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a check-in. It takes the place of the one before if both were answered the same, unless it has
    /// no facts and the other has some. Returns the one that is not needed any more.
    pub(super) fn put(
        &mut self,
        name: &str,
        fresh: Fresh,
        room: OwnedSemaphorePermit,
        receipt: Option<Receipt>,
    ) -> Option<QueuedCheckIn> {
        if let Some(receipt) = receipt {
            self.receipts.push((name.to_owned(), receipt));
            self.urgency = Urgency::AtOnce;
        }
        let queued = QueuedCheckIn { fresh, _room: room };
        match self.nodes.get_mut(name) {
            Some(node) => add(node, queued),
            None => {
                self.nodes.insert(name.to_owned(), vec![queued]);
                None
            }
        }
    }

    /// Returns the latest that waits of a node, the latest with facts if there is one.
    pub(super) fn get(&self, name: &str) -> Option<Fresh> {
        let waiting = self.nodes.get(name).and_then(latest);
        let writing = self.writing.get(name);
        match (waiting, writing) {
            (Some(waiting), Some(writing)) if waiting.row.facts == FactsPresence::None => {
                Some(writing)
            }
            (Some(found), _) | (None, Some(found)) => Some(found),
            (None, None) => None,
        }
        .cloned()
    }

    /// Takes what waits, about so many bytes of it; it is still found by [`Self::get`] until
    /// [`Self::written`].
    pub(super) fn take(&mut self, nodes: usize, bytes: usize) -> WriteBatch {
        self.urgency = Urgency::CanWait;
        let mut batch = WriteBatch::default();
        let mut taken = 0;
        // What is promised goes first.
        let promised = std::mem::take(&mut self.receipts);
        for (name, receipt) in promised {
            if let Some((name, node)) = self.nodes.remove_entry(&name) {
                taken += bytes_of(&node);
                batch.nodes.insert(name, node);
            }
            batch.receipts.push((name, receipt));
        }
        while batch.nodes.len() < nodes
            && taken < bytes
            && let Some((name, node)) = self.nodes.pop_first()
        {
            taken += bytes_of(&node);
            batch.nodes.insert(name, node);
        }
        let latest = |(name, node): (&String, &QueuedNode)| {
            latest(node).map(|it| (name.clone(), it.clone()))
        };
        self.writing = batch.nodes.iter().filter_map(latest).collect();
        batch
    }

    /// Forgets what was being written.
    pub(super) fn written(&mut self) {
        self.writing.clear();
    }

    /// Takes back what could not be written and was not promised, to be tried again.
    pub(super) fn put_back(&mut self, batch: WriteBatch) {
        self.writing.clear();
        for (name, mut node) in batch.nodes {
            node.retain(|it| it.fresh.keeping == Keeping::Noted);
            for newer in self.nodes.remove(&name).unwrap_or_default() {
                add(&mut node, newer);
            }
            if !node.is_empty() {
                self.nodes.insert(name, node);
            }
        }
    }

    /// Drops what waits of a node; returns whether something did. What is promised is still written.
    pub(super) fn forget(&mut self, name: &str) -> bool {
        let is_promised = self.receipts.iter().any(|(it, _)| it == name);
        !is_promised && self.nodes.remove(name).is_some()
    }

    /// Drops the promised check-ins that wait, and says why.
    pub(super) fn reject_promised(&mut self, error: &StoreError) {
        self.urgency = Urgency::CanWait;
        for node in self.nodes.values_mut() {
            node.retain(|it| it.fresh.keeping == Keeping::Noted);
        }
        self.nodes.retain(|_, node| !node.is_empty());
        for (_, receipt) in self.receipts.drain(..) {
            // The request may have ended.
            receipt.send(Err(error.clone())).ok();
        }
    }
}

/// Adds a check-in to those of its node; returns the one that is not needed any more.
fn add(node: &mut QueuedNode, mut queued: QueuedCheckIn) -> Option<QueuedCheckIn> {
    let Some(last) = node.last_mut().filter(|it| it.is_answered_as(&queued)) else {
        let oldest = (node.len() >= OF_ONE_NODE).then(|| node.remove(0));
        node.push(queued);
        return oldest;
    };
    if queued.has_facts() || !last.has_facts() {
        if last.fresh.keeping == Keeping::Promised {
            queued.fresh.keeping = Keeping::Promised;
        }
        queued.fresh.answered_at = last.fresh.answered_at;
        std::mem::swap(last, &mut queued);
    }
    Some(queued)
}

fn latest(node: &QueuedNode) -> Option<&Fresh> {
    let with_facts = node.iter().rev().find(|it| it.has_facts());
    with_facts.or(node.last()).map(|it| &it.fresh)
}

fn bytes_of(node: &QueuedNode) -> usize {
    node.iter().map(|it| it.fresh.row.body.len()).sum()
}

impl QueuedCheckIn {
    fn has_facts(&self) -> bool {
        self.fresh.row.facts == FactsPresence::Some
    }

    /// Returns whether this one and the next are the same in all that changes are made of.
    fn is_answered_as(&self, next: &Self) -> bool {
        match (&self.fresh.row.answered, &next.fresh.row.answered) {
            (Some(one), Some(next)) => one.is_same_as(next),
            (None, None) => true,
            // Facts that were submitted are those of the next answer.
            _ => false,
        }
    }
}

impl WriteBatch {
    /// Sends the result to every waiter.
    pub(super) fn answer(&mut self, how: impl Fn(&str) -> Result<(), StoreError>) {
        for (name, receipt) in self.receipts.drain(..) {
            // The request may have ended.
            receipt.send(how(&name)).ok();
        }
    }
}
