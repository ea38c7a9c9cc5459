//! Which commits contain which, as far as it was read: the state decides under a lock, and a walk of history takes long.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use crate::git::ReadError;
use crate::model::CommitId;

/// Two commits of which one may be an ancestor of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::reconcile) struct CommitPair {
    pub(in crate::reconcile) ancestor: CommitId,
    pub(in crate::reconcile) descendant: CommitId,
}

/// What the repository says of two commits.
#[derive(Clone, Debug)]
pub(in crate::reconcile) struct AncestryAnswer {
    pub(in crate::reconcile) is_ancestor: Result<bool, ReadError>,
    /// Whether the next fetch cannot change it: nothing that it needs was missing or damaged.
    pub(in crate::reconcile) is_final: bool,
}

/// What keeps a decision from being made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::reconcile) enum AncestryGap {
    /// It was not read yet.
    Unknown(CommitPair),
    /// It cannot be read.
    Unread(ReadError),
}

/// The answers that were read. The state asks for others as well: then its decision is not made, and is tried again once
/// they are read.
#[derive(Debug, Default)]
pub(in crate::reconcile) struct KnownAncestry {
    answers: HashMap<CommitPair, AncestryAnswer>,
    asked: RefCell<AskedPairs>,
}

/// What decisions asked for.
#[derive(Debug, Default)]
struct AskedPairs {
    /// Since answers were dropped last.
    pairs: HashSet<CommitPair>,
    /// The first gap of the decision; what is asked after it may not matter.
    gap: Option<AncestryGap>,
}

impl AskedPairs {
    fn note(&mut self, gap: AncestryGap) {
        self.gap.get_or_insert(gap);
    }
}

impl KnownAncestry {
    /// Returns whether one commit is the other or an ancestor of it. Nothing is to be decided by the answer if there is a
    /// [gap](Self::gap).
    pub(super) fn is_ancestor(&self, ancestor: CommitId, descendant: CommitId) -> bool {
        match self.ask(CommitPair { ancestor, descendant }) {
            Ok(is_ancestor) => is_ancestor,
            Err(gap) => {
                self.asked.borrow_mut().note(gap);
                false
            }
        }
    }

    /// The same for commits that may not be here: what of it cannot be read keeps nothing from being decided.
    pub(super) fn is_visible(&self, commit: CommitId, head: CommitId) -> bool {
        match self.ask(CommitPair { ancestor: commit, descendant: head }) {
            Ok(is_visible) => is_visible,
            Err(AncestryGap::Unread(_)) => false,
            Err(gap @ AncestryGap::Unknown(_)) => {
                self.asked.borrow_mut().note(gap);
                false
            }
        }
    }

    fn ask(&self, pair: CommitPair) -> Result<bool, AncestryGap> {
        if pair.ancestor == pair.descendant {
            return Ok(true);
        }
        self.asked.borrow_mut().pairs.insert(pair);
        let answer = self.answers.get(&pair).ok_or(AncestryGap::Unknown(pair))?;
        answer.is_ancestor.clone().map_err(AncestryGap::Unread)
    }

    /// Returns what keeps the decision from being made.
    pub(in crate::reconcile) fn gap(&self) -> Option<AncestryGap> {
        self.asked.borrow().gap.clone()
    }

    /// Returns whether all was read that a decision asked for, which was only tried; what of it cannot be read is forgotten.
    pub(in crate::reconcile) fn is_known(&self) -> bool {
        let mut asked = self.asked.borrow_mut();
        asked.gap.take_if(|it| matches!(it, AncestryGap::Unread(_)));
        asked.gap.is_none()
    }

    /// A decision is made from the beginning.
    pub(in crate::reconcile) fn begin(&mut self) {
        self.asked.get_mut().gap = None;
    }

    /// Notes what the repository says.
    pub(in crate::reconcile) fn insert(&mut self, pair: CommitPair, answer: AncestryAnswer) {
        self.answers.insert(pair, answer);
    }

    /// Keeps what the next decision may ask for again: a head that waits is decided about after every fetch.
    pub(in crate::reconcile) fn keep_asked(&mut self) {
        let AskedPairs { pairs, .. } = self.asked.take();
        // A decision that is out of date asks for nothing.
        self.answers.retain(|pair, it| it.is_final && (pairs.is_empty() || pairs.contains(pair)));
    }

    /// Forgets everything: another repository is read from now on.
    pub(in crate::reconcile) fn clear(&mut self) {
        *self = Self::default();
    }
}
