//! Pushes of which nobody knows whether they arrived.

use std::sync::PoisonError;

use super::{Applied, WriteRequest, Writer};
use crate::amend::Answer;
use crate::git::Repository;
use crate::model::CommitId;

/// How many of them are remembered.
const REMEMBERED: usize = 256;

impl Writer {
    /// Remembers pushes that may have arrived, so that a repeated request is known again.
    pub(super) fn remember(&self, applied: &[Applied]) {
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        for it in applied {
            let fingerprint = it.job.request.fingerprint;
            let answer = it.amendment.answer.clone();
            unknown.push_back((fingerprint, it.snapshot.commit, answer));
        }
        let surplus = unknown.len().saturating_sub(REMEMBERED);
        unknown.drain(..surplus);
    }

    /// Returns what the client of a push that did arrive was not told.
    pub(super) fn arrived(
        &self,
        repository: &Repository,
        request: &WriteRequest,
        tip: CommitId,
    ) -> Option<Answer> {
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        let at = unknown.iter().position(|(fingerprint, commit, _)| {
            *fingerprint == request.fingerprint
                && repository.is_ancestor(*commit, tip).unwrap_or(false)
        })?;
        unknown.remove(at).map(|(_, _, answer)| answer)
    }
}
