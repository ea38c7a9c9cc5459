//! What waits to be written.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::check_in::QueuedRow;
use super::error::StoreError;
use crate::model::CommitId;

/// How many commits gave the answers that wait, at the most: each is kept built until they are written.
const COMMITS: usize = 64;

/// How many check-ins of one node wait, if each was answered differently than the one before.
const OF_ONE_NODE: usize = 16;

/// Reports to the waiting request that a check-in is kept.
pub(super) type Receipt = oneshot::Sender<Result<(), StoreError>>;

/// A row that is to be written.
#[derive(Clone, Debug)]
pub(super) struct Fresh {
    pub(super) row: Arc<QueuedRow>,
    pub(super) keeping: Keeping,
    /// When the node was first answered so, of the check-ins whose place this one took; in microseconds
    /// since 1970.
    pub(super) answered_at: i64,
    /// When it came.
    pub(super) queued: Instant,
}

impl Fresh {
    pub(super) fn new(row: QueuedRow, keeping: Keeping) -> Self {
        let answered_at = row.origin().time.as_microsecond();
        #[expect(clippy::disallowed_methods, reason = "time passes while a check-in waits")]
        let queued = Instant::now();
        Self { row: Arc::new(row), keeping, answered_at, queued }
    }

    /// Returns for how long it has waited, in microseconds.
    pub(super) fn waited(&self) -> i64 {
        i64::try_from(self.queued.elapsed().as_micros()).unwrap_or(i64::MAX)
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
    /// When it came, or the first of those whose place it took.
    position: QueuePosition,
    /// Receipts of the requests that wait for it, or for those whose place it took.
    receipts: Vec<Receipt>,
    /// Given back when the check-in is dropped.
    _room: OwnedSemaphorePermit,
}

/// The place of a node in the queue: the lowest is written first, so that no node waits for ever under load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueuePosition(u64);

/// The check-ins of a node that wait, in the order in which they came.
#[derive(Debug)]
pub(super) struct QueuedNode {
    position: QueuePosition,
    pub(super) check_ins: Vec<QueuedCheckIn>,
}

/// What waits to be written, by name.
#[derive(Debug, Default)]
pub(super) struct CheckInQueue {
    nodes: BTreeMap<String, QueuedNode>,
    /// The names in the order in which they came.
    order: BTreeMap<QueuePosition, String>,
    /// The position behind all others.
    end: QueuePosition,
    /// The nodes that requests wait for, in the order in which they came.
    promised: Vec<String>,
    /// The commits that gave answers last, the latest at the end: no other gave one that waits.
    commits: VecDeque<CommitId>,
    /// The check-ins that are being written, for reads meanwhile.
    writing: BTreeMap<String, Vec<Fresh>>,
    pub(super) urgency: Urgency,
    pub(super) stopping: bool,
    /// Whether the writer is to open the store, though it waits to try again.
    pub(super) is_woken: bool,
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

/// What went from the queue for a check-in that came.
#[derive(Debug, Default)]
pub(super) struct Displaced {
    /// How many are lost: too many of one node that were answered differently. What was answered the same is not, since the
    /// other says all that it did.
    pub(super) lost: usize,
    /// It takes time to drop, in which others need the queue.
    _check_in: Option<QueuedCheckIn>,
}

/// What is written in one transaction.
#[derive(Debug, Default)]
pub(super) struct WriteBatch {
    pub(super) nodes: BTreeMap<String, QueuedNode>,
}

impl CheckInQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a check-in. It takes the place of the one before if both were answered the same, unless it has
    /// no facts and the other has some. Returns the one that is not needed any more, or is one too many.
    pub(super) fn put(
        &mut self,
        name: &str,
        fresh: Fresh,
        room: OwnedSemaphorePermit,
        receipt: Option<Receipt>,
    ) -> Displaced {
        if receipt.is_some() {
            self.promised.push(name.to_owned());
            self.urgency = Urgency::AtOnce;
        }
        let position = self.end;
        self.end.0 += 1;
        let receipts = receipt.into_iter().collect();
        let queued = QueuedCheckIn { fresh, position, receipts, _room: room };
        match self.nodes.get_mut(name) {
            Some(node) => node.add(name, queued),
            None => {
                self.insert(name.to_owned(), QueuedNode { position, check_ins: vec![queued] });
                Displaced::default()
            }
        }
    }

    /// Notes which commit gave the answer of a check-in. Takes the check-ins that were answered by the one
    /// of too many commits that gave none for longest out of the queue, and returns them.
    pub(super) fn note_commit(&mut self, commit: CommitId) -> Vec<QueuedCheckIn> {
        // The latest is the usual one.
        if self.commits.back() == Some(&commit) {
            return Vec::new();
        }
        if let Some(at) = self.commits.iter().position(|it| *it == commit) {
            self.commits.remove(at);
        }
        self.commits.push_back(commit);
        if self.commits.len() <= COMMITS {
            return Vec::new();
        }
        let Some(oldest) = self.commits.pop_front() else { return Vec::new() };
        let mut outdated = Vec::new();
        for node in self.nodes.values_mut() {
            outdated.extend(node.check_ins.extract_if(.., |it| it.commit() == Some(oldest)));
        }
        self.remove_emptied();
        outdated
    }

    fn remove_emptied(&mut self) {
        let emptied = self.nodes.extract_if(.., |_, node| node.check_ins.is_empty());
        for (_, node) in emptied {
            self.order.remove(&node.position);
        }
    }

    /// Makes all that waits come earlier.
    #[cfg(test)]
    pub(super) fn age(&mut self, by: std::time::Duration) {
        for queued in self.nodes.values_mut().flat_map(|it| &mut it.check_ins) {
            let earlier = queued.fresh.queued.checked_sub(by);
            queued.fresh.queued = earlier.unwrap_or(queued.fresh.queued);
        }
    }

    /// Returns the position behind all that wait now.
    pub(super) fn end(&self) -> QueuePosition {
        self.end
    }

    /// Returns whether nothing waits that came before a position was the end.
    pub(super) fn is_written_up_to(&self, end: QueuePosition) -> bool {
        self.order.first_key_value().is_none_or(|(first, _)| *first >= end)
    }

    fn insert(&mut self, name: String, node: QueuedNode) {
        self.order.insert(node.position, name.clone());
        self.nodes.insert(name, node);
    }

    fn remove(&mut self, name: &str) -> Option<(String, QueuedNode)> {
        let (name, node) = self.nodes.remove_entry(name)?;
        self.order.remove(&node.position);
        Some((name, node))
    }

    fn pop_first(&mut self) -> Option<(String, QueuedNode)> {
        let (_, name) = self.order.pop_first()?;
        self.nodes.remove_entry(&name)
    }

    /// Returns the check-ins of a node that are being written and that wait, in the order in which they came.
    pub(super) fn get(&self, name: &str) -> Vec<Fresh> {
        let waiting = self.nodes.get(name).into_iter().flat_map(QueuedNode::fresh);
        let writing = self.writing.get(name).into_iter().flatten();
        writing.chain(waiting).cloned().collect()
    }

    /// Returns the last check-in of a node that waits.
    pub(super) fn last(&self, name: &str) -> Option<Arc<QueuedRow>> {
        Some(Arc::clone(&self.nodes.get(name)?.check_ins.last()?.fresh.row))
    }

    /// Takes what waits, about so many bytes of it; it is still found by [`Self::get`] until
    /// [`Self::written`]. While check-ins are written, their facts and what rules mention of them are in memory
    /// several times, so those of one node are taken some at a time.
    pub(super) fn take(&mut self, nodes: usize, bytes: usize) -> WriteBatch {
        let mut batch = WriteBatch::default();
        let mut taken = 0;
        // What is promised goes first.
        for name in std::mem::take(&mut self.promised) {
            let has_room = batch.nodes.len() < nodes && taken < bytes;
            if has_room && let Some((name, mut node)) = self.remove(&name) {
                taken += self.take_some(&name, &mut node, bytes - taken);
                batch.nodes.insert(name, node);
            }
            if self.is_promised(&name) {
                self.promised.push(name);
            }
        }
        self.set_urgency();
        while batch.nodes.len() < nodes
            && taken < bytes
            && let Some((name, mut node)) = self.pop_first()
        {
            taken += self.take_some(&name, &mut node, bytes - taken);
            batch.nodes.insert(name, node);
        }
        let fresh =
            |(name, node): (&String, &QueuedNode)| (name.clone(), node.fresh().cloned().collect());
        self.writing = batch.nodes.iter().map(fresh).collect();
        batch
    }

    fn is_promised(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(QueuedNode::is_promised)
    }

    fn set_urgency(&mut self) {
        self.urgency = if self.promised.is_empty() { Urgency::CanWait } else { Urgency::AtOnce };
    }

    /// Keeps about so many bytes of a node that is taken, and leaves the rest in the queue. Returns how many were kept.
    fn take_some(&mut self, name: &str, node: &mut QueuedNode, bytes: usize) -> usize {
        if let Some(rest) = node.split_after(bytes) {
            self.insert(name.to_owned(), rest);
        }
        node.bytes()
    }

    /// Forgets what was being written, and returns it: dropping so much takes time in which others need the
    /// queue.
    pub(super) fn written(&mut self) -> BTreeMap<String, Vec<Fresh>> {
        std::mem::take(&mut self.writing)
    }

    /// Takes back what could not be written and was not promised, to be tried again. Returns how many check-ins
    /// were answered by commits that are too many meanwhile, and are dropped.
    pub(super) fn put_back(&mut self, batch: WriteBatch) -> usize {
        self.writing.clear();
        let mut dropped = 0;
        for (name, mut node) in batch.nodes {
            node.check_ins.retain(|it| it.fresh.keeping == Keeping::Noted);
            dropped += self.put_back_node(name, node);
        }
        dropped
    }

    /// Takes back what could not be written together, what is promised included, to be tried in smaller parts; returns
    /// as [`Self::put_back`] does.
    pub(super) fn put_back_all(&mut self, batch: WriteBatch) -> usize {
        self.writing.clear();
        let promised = batch.nodes.iter().filter(|(_, it)| it.is_promised());
        self.promised.extend(promised.map(|(name, _)| name.clone()));
        self.set_urgency();
        batch.nodes.into_iter().map(|(name, node)| self.put_back_node(name, node)).sum()
    }

    /// Returns how many check-ins it drops: commits answered them that are too many meanwhile, or the node has too many.
    fn put_back_node(&mut self, name: String, mut node: QueuedNode) -> usize {
        let before = node.check_ins.len();
        node.check_ins.retain(|it| it.commit().is_none_or(|it| self.commits.contains(&it)));
        let mut dropped = before - node.check_ins.len();
        let newer = self.remove(&name).map(|(_, it)| it.check_ins).unwrap_or_default();
        dropped += newer.into_iter().map(|it| node.add(&name, it).lost).sum::<usize>();
        if !node.check_ins.is_empty() {
            self.insert(name, node);
        }
        dropped
    }

    /// Drops what waits of a node; returns whether something did. What is promised is still written.
    pub(super) fn forget(&mut self, name: &str) -> bool {
        !self.is_promised(name) && self.remove(name).is_some()
    }

    /// Drops the promised check-ins that wait, and says why.
    pub(super) fn reject_promised(&mut self, error: &StoreError) {
        self.urgency = Urgency::CanWait;
        self.promised.clear();
        for node in self.nodes.values_mut() {
            node.answer(&Err(error.clone()));
            node.check_ins.retain(|it| it.fresh.keeping == Keeping::Noted);
        }
        self.remove_emptied();
    }
}

impl QueuedNode {
    /// Adds a check-in of the node with a name.
    fn add(&mut self, name: &str, mut queued: QueuedCheckIn) -> Displaced {
        let is_replaced = |last: &&mut QueuedCheckIn| {
            last.is_answered_as(name, &queued)
                && (queued.fresh.row.is_whole() || last.fresh.row.said() == queued.fresh.row.said())
        };
        let Some(last) = self.check_ins.last_mut().filter(is_replaced) else {
            self.check_ins.push(queued);
            let is_full = self.check_ins.len() > OF_ONE_NODE;
            let at = is_full.then(|| self.first_superfluous()).flatten();
            let superfluous = at.map(|it| self.check_ins.remove(it));
            return Displaced { lost: usize::from(superfluous.is_some()), _check_in: superfluous };
        };
        if !queued.fresh.row.says_less_than(&last.fresh.row) {
            if last.fresh.keeping == Keeping::Promised {
                queued.fresh.keeping = Keeping::Promised;
            }
            queued.fresh.answered_at = last.fresh.answered_at;
            queued.position = last.position;
            std::mem::swap(last, &mut queued);
        }
        last.receipts.append(&mut queued.receipts);
        Displaced { lost: 0, _check_in: Some(queued) }
    }

    /// Returns the place of the first check-in that no request waits for and of which later ones leave nothing.
    fn first_superfluous(&self) -> Option<usize> {
        self.check_ins.iter().enumerate().position(|(at, it)| {
            let (row, later) = (&it.fresh.row, self.check_ins.get(at + 1..).unwrap_or_default());
            let is_left = |later: &QueuedCheckIn| {
                let is_same_part = later.fresh.row.said() == row.said() && !row.is_whole();
                !is_same_part && !later.fresh.row.is_whole()
            };
            it.receipts.is_empty()
                && it.fresh.keeping == Keeping::Noted
                && !later.iter().all(is_left)
        })
    }

    /// Keeps the check-ins that begin within so many bytes, and returns those after them. These have the position at
    /// which the first of them came, so that a node that goes on asking keeps no other waiting, nor who waits for what
    /// came before.
    fn split_after(&mut self, bytes: usize) -> Option<Self> {
        let mut taken = 0;
        let begin_within = self.check_ins.iter().take_while(|it| {
            let before = taken;
            taken += it.fresh.row.bytes();
            before < bytes
        });
        let kept = begin_within.count();
        let check_ins = self.check_ins.split_off(kept);
        Some(Self { position: check_ins.first()?.position, check_ins })
    }

    fn fresh(&self) -> impl Iterator<Item = &Fresh> {
        self.check_ins.iter().map(|it| &it.fresh)
    }

    fn bytes(&self) -> usize {
        self.check_ins.iter().map(|it| it.fresh.row.bytes()).sum()
    }

    fn is_promised(&self) -> bool {
        self.check_ins.iter().any(|it| !it.receipts.is_empty())
    }

    /// Sends the result to all who wait for these check-ins.
    fn answer(&mut self, result: &Result<(), StoreError>) {
        for receipt in self.check_ins.iter_mut().flat_map(|it| it.receipts.drain(..)) {
            // The request may have ended.
            receipt.send(result.clone()).ok();
        }
    }
}

impl QueuedCheckIn {
    /// Returns the commit whose answer it is kept for. What is promised is kept for that.
    fn commit(&self) -> Option<CommitId> {
        let answered = self.fresh.row.answered()?;
        let is_noted = self.fresh.keeping == Keeping::Noted && self.receipts.is_empty();
        is_noted.then_some(answered.snapshot.commit)
    }

    /// Returns whether this one and the next of the node with a name are the same in all that changes are made of.
    fn is_answered_as(&self, name: &str, next: &Self) -> bool {
        let (row, next) = (&self.fresh.row, &next.fresh.row);
        match (row.answered(), next.answered()) {
            // Groups may decide, or facts that are put into values.
            (Some(one), Some(other)) => {
                one.is_same_as(other) && (one.is_decided_for(name) || row.mentions_as(next, name))
            }
            (None, None) => true,
            // Facts that were submitted are those of the next answer.
            _ => false,
        }
    }
}

impl WriteBatch {
    /// Returns how many check-ins there are of all nodes but some.
    pub(super) fn check_ins_beside(&self, refused: &[String]) -> usize {
        let written = self.nodes.iter().filter(|(name, _)| !refused.contains(name));
        written.map(|(_, node)| node.check_ins.len()).sum()
    }

    /// Sends to every waiter the result of its node.
    pub(super) fn answer(&mut self, how: impl Fn(&str) -> Result<(), StoreError>) {
        for (name, node) in &mut self.nodes {
            node.answer(&how(name));
        }
    }
}
