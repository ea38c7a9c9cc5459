//! What waits to be written.

use std::collections::BTreeMap;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::check_in::FactsPresence;
use super::database::{Fresh, Keeping};
use super::error::StoreError;

/// Reports to the waiting request that a check-in is kept.
pub(super) type Receipt = oneshot::Sender<Result<(), StoreError>>;

/// A check-in that waits, and the room in the queue that it takes.
#[derive(Debug)]
pub(super) struct QueuedCheckIn {
    pub(super) fresh: Fresh,
    /// Given back when the check-in is dropped.
    _room: OwnedSemaphorePermit,
}

/// What waits to be written, by name: of each node the latest.
#[derive(Debug, Default)]
pub(super) struct CheckInQueue {
    fresh: WriteBatch,
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
    pub(super) rows: BTreeMap<String, QueuedCheckIn>,
    receipts: Vec<(String, Receipt)>,
}

impl CheckInQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.fresh.rows.is_empty()
    }

    /// Adds a check-in; one without facts does not take the place of one with facts.
    pub(super) fn put(
        &mut self,
        name: &str,
        fresh: Fresh,
        room: OwnedSemaphorePermit,
        receipt: Option<Receipt>,
    ) -> Option<QueuedCheckIn> {
        if let Some(receipt) = receipt {
            self.fresh.receipts.push((name.to_owned(), receipt));
            self.urgency = Urgency::AtOnce;
        }
        let mut waiting = QueuedCheckIn { fresh, _room: room };
        let Some(known) = self.fresh.rows.get_mut(name) else {
            self.fresh.rows.insert(name.to_owned(), waiting);
            return None;
        };
        if waiting.has_facts() || !known.has_facts() {
            if known.fresh.keeping == Keeping::Promised {
                waiting.fresh.keeping = Keeping::Promised;
            }
            std::mem::swap(known, &mut waiting);
        }
        Some(waiting)
    }

    /// Returns what waits of a node.
    pub(super) fn get(&self, name: &str) -> Option<Fresh> {
        let waiting = self.fresh.rows.get(name).map(|it| &it.fresh);
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

    /// Takes all that waits; it is still found by [`Self::get`] until [`Self::written`].
    pub(super) fn take(&mut self) -> WriteBatch {
        self.urgency = Urgency::CanWait;
        let batch = std::mem::take(&mut self.fresh);
        self.writing =
            batch.rows.iter().map(|(name, it)| (name.clone(), it.fresh.clone())).collect();
        batch
    }

    /// Forgets what was being written.
    pub(super) fn written(&mut self) {
        self.writing.clear();
    }

    /// Takes back what could not be written and was not promised, to be tried again.
    pub(super) fn put_back(&mut self, batch: WriteBatch) {
        self.writing.clear();
        for (name, waiting) in batch.rows {
            let is_newer = self.fresh.rows.get(&name).is_some_and(QueuedCheckIn::has_facts);
            if waiting.fresh.keeping == Keeping::Noted && !is_newer {
                self.fresh.rows.insert(name, waiting);
            }
        }
    }

    /// Drops the promised check-ins that wait, and says why.
    pub(super) fn reject_promised(&mut self, error: &StoreError) {
        self.urgency = Urgency::CanWait;
        self.fresh.rows.retain(|_, it| it.fresh.keeping == Keeping::Noted);
        for (_, receipt) in self.fresh.receipts.drain(..) {
            // The request may have ended.
            receipt.send(Err(error.clone())).ok();
        }
    }
}

impl QueuedCheckIn {
    fn has_facts(&self) -> bool {
        self.fresh.row.facts == FactsPresence::Some
    }
}

impl WriteBatch {
    pub(super) fn rows(&self) -> impl Iterator<Item = (&str, &Fresh)> {
        self.rows.iter().map(|(name, it)| (name.as_str(), &it.fresh))
    }

    /// Sends the result to every waiter.
    pub(super) fn answer(&mut self, how: impl Fn(&str) -> Result<(), StoreError>) {
        for (name, receipt) in self.receipts.drain(..) {
            // The request may have ended.
            receipt.send(how(&name)).ok();
        }
    }
}
