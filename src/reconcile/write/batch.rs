//! Writes that are decided on one commit of the branch, and not answered yet.

use std::sync::Arc;

use super::queue::QueuedWrite;
use super::receipt::{Deliveries, DeliveryReceipt};
use super::request::{WriteError, Written};
use crate::changeset::Changeset;
use crate::history::Edit;
use crate::model::CommitId;
use crate::reconcile::journal::PushedWrite;
use crate::reconcile::state::Withheld;
use crate::snapshot::Snapshot;

/// What a write changed that was applied and is not pushed yet.
pub(super) struct AppliedWrite {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) changeset: Changeset,
    /// The commit that its client is answered with, unless nothing had to change.
    pub(super) answered_with: Option<CommitId>,
    pub(super) edit: Option<Edit>,
}

/// What came of a write on one commit of the branch.
enum Decided {
    Applied(QueuedWrite, AppliedWrite),
    /// The groups of that commit do not allow it: another commit may.
    Refused(QueuedWrite, WriteError),
}

/// Writes in the order in which they came, each decided on what the one before it left.
#[derive(Default)]
pub(super) struct DecidedWrites(Vec<Decided>);

impl DecidedWrites {
    pub(super) fn push_applied(&mut self, queued: QueuedWrite, applied: AppliedWrite) {
        self.0.push(Decided::Applied(queued, applied));
    }

    /// Keeps a refusal until the commit is known to be the newest; one that does not depend on it is the answer.
    pub(super) fn push_refused(&mut self, queued: QueuedWrite, error: WriteError) {
        match error.depends_on_groups() {
            true => self.0.push(Decided::Refused(queued, error)),
            false => (queued.reply)(Err(error)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn applied(&self) -> impl DoubleEndedIterator<Item = (&QueuedWrite, &AppliedWrite)> {
        self.0.iter().filter_map(|it| match it {
            Decided::Applied(queued, applied) => Some((queued, applied)),
            Decided::Refused(..) => None,
        })
    }

    /// Returns whether the client of a write is answered with a commit.
    pub(super) fn answers_with(&self, commit: CommitId) -> bool {
        self.applied().any(|(_, it)| it.answered_with == Some(commit))
    }

    /// Returns the snapshot that the last write left; none where all are refused.
    pub(super) fn last(&self) -> Option<&Arc<Snapshot>> {
        self.applied().next_back().map(|(_, it)| &it.snapshot)
    }

    /// Returns what the journal has of the writes that made a commit, before they are pushed.
    pub(super) fn pushing(&self) -> Vec<PushedWrite> {
        let made = self.applied().filter(|(_, it)| it.answered_with == Some(it.snapshot.commit));
        made.map(|(queued, it)| PushedWrite {
            fingerprint: queued.request.fingerprint.clone(),
            commit: it.snapshot.commit,
            answer: it.changeset.answer.clone(),
        })
        .collect()
    }

    /// Returns the files that the writes change.
    pub(super) fn files(&self) -> impl Iterator<Item = &String> {
        self.applied().flat_map(|(_, it)| it.changeset.files.keys())
    }

    /// Returns the writes as they were queued, those that are refused with why.
    pub(super) fn into_queued(self) -> Vec<QueuedWrite> {
        let queued = |it| match it {
            Decided::Applied(queued, _) => QueuedWrite { refusal: None, ..queued },
            Decided::Refused(queued, error) => QueuedWrite { refusal: Some(error), ..queued },
        };
        self.0.into_iter().map(queued).collect()
    }

    /// Answers each client with the commit that its write made or found, which the live one contains, or with its
    /// refusal. `tip` is the commit that the first write was applied to.
    pub(super) fn answer(self, tip: CommitId, deliveries: &Arc<Deliveries>) {
        let mut before = tip;
        self.answer_each(|AppliedWrite { snapshot, changeset, answered_with, edit }| {
            let changed = snapshot.commit != before;
            before = snapshot.commit;
            let receipt = answered_with.map(|it| Arc::new(DeliveryReceipt::new(it, deliveries)));
            Ok(Written::Active { snapshot, answer: changeset.answer, edit, changed, receipt })
        });
    }

    /// Answers each client that its write is on the branch and not live, or with its refusal. The same request again is
    /// safe: after a resume it gets the first answer.
    pub(super) fn answer_withheld(self, withheld: Withheld) {
        self.answer_each(|AppliedWrite { snapshot, answered_with, .. }| {
            let commit = answered_with.unwrap_or(snapshot.commit);
            Err(match withheld {
                Withheld::Pinned(pinned) => WriteError::NotInEffect { commit, pinned },
                Withheld::Superseded(by) => WriteError::Blocked(format!(
                    "the change was pushed as the commit {commit}, and the branch went to {by}, which \
                     lacks it, before it answered"
                )),
                Withheld::Unread => WriteError::Blocked(format!(
                    "the change was pushed as the commit {commit} and does not answer yet, since the history of the \
                     branch cannot be read: the next fetch decides"
                )),
                Withheld::KeysChanged => WriteError::Blocked(format!(
                    "the change was pushed as the commit {commit} and does not answer yet, since keys changed \
                     meanwhile: it is verified again"
                )),
                Withheld::Held | Withheld::Stopping => WriteError::Blocked(format!(
                    "the change is on the branch as the commit {commit} and does not answer yet"
                )),
            })
        });
    }

    fn answer_each(self, mut answer: impl FnMut(AppliedWrite) -> Result<Written, WriteError>) {
        for decided in self.0 {
            match decided {
                Decided::Applied(queued, applied) => (queued.reply)(answer(applied)),
                Decided::Refused(queued, error) => (queued.reply)(Err(error)),
            }
        }
    }

    /// Answers each client that its write failed with the batch. A refused one has changed nothing, whatever came of
    /// the push.
    pub(super) fn fail(self, error: &WriteError) {
        for decided in self.0 {
            match decided {
                Decided::Applied(queued, _) => (queued.reply)(Err(error.clone())),
                Decided::Refused(queued, refusal) => {
                    (queued.reply)(Err(error.clone().of_refused(refusal)));
                }
            }
        }
    }
}
