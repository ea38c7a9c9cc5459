//! What becomes of the candidate while it is built.

use std::time::Instant;

use super::{Candidate, Fallback, Progress, ReconcileState};
use crate::git::SignatureFault;
use crate::model::CommitId;
use crate::reconcile::journal::Stage;
use crate::reconcile::status::{FailedCommit, Reason};
use crate::reconcile::trigger::Trigger;

/// A commit to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reconcile) struct BuildJob {
    pub(in crate::reconcile) commit: CommitId,
    pub(in crate::reconcile) trigger: Trigger,
    /// When it was first announced or seen.
    pub(in crate::reconcile) since: Instant,
}

impl Candidate {
    pub(super) fn reject_signature(&mut self, fault: SignatureFault) {
        let failed = FailedCommit::as_a_whole(self.commit, Stage::Verify, &fault);
        self.progress = Progress::Failed(failed, reason_of(&fault));
        self.fault = Some(fault);
    }
}

impl ReconcileState {
    /// Returns whether a candidate waits for the builder.
    pub(in crate::reconcile) fn has_pending(&self) -> bool {
        self.candidate.as_ref().is_some_and(|it| matches!(it.progress, Progress::Pending))
    }

    /// Hands the candidate that waits to the builder.
    pub(in crate::reconcile) fn take_build(&mut self) -> Option<BuildJob> {
        let pending = |it: &&mut Candidate| matches!(it.progress, Progress::Pending);
        let candidate = self.candidate.as_mut().filter(pending)?;
        candidate.progress = Progress::Building;
        let Candidate { commit, trigger, since, .. } = *candidate;
        Some(BuildJob { commit, trigger, since })
    }

    /// Returns the commit that is on its way.
    pub(in crate::reconcile) fn candidate(&self) -> Option<CommitId> {
        self.candidate.as_ref().map(|it| it.commit)
    }

    /// Returns the commit that the builder has.
    pub(in crate::reconcile) fn building(&self) -> Option<CommitId> {
        let building = |it: &&Candidate| matches!(it.progress, Progress::Building);
        self.candidate.as_ref().filter(building).map(|it| it.commit)
    }

    /// Returns whether a commit is still the candidate: no newer one was fetched.
    pub(in crate::reconcile) fn is_wanted(&self, commit: CommitId) -> bool {
        !self.stopping && self.is_candidate(commit)
    }

    /// The candidate was rejected.
    pub(in crate::reconcile) fn build_failed(&mut self, failed: FailedCommit, reason: Reason) {
        if let Some(candidate) = self.candidate.as_mut().filter(|it| it.commit == failed.commit) {
            candidate.progress = Progress::Failed(failed, reason);
            candidate.fault = None;
        }
    }

    /// The candidate was rejected for its signature or one in its history.
    pub(in crate::reconcile) fn signature_rejected(
        &mut self,
        commit: CommitId,
        fault: SignatureFault,
    ) {
        if let Some(candidate) = self.candidate.as_mut().filter(|it| it.commit == commit) {
            candidate.reject_signature(fault);
        }
    }

    /// Returns why a candidate was rejected, if that was for a signature.
    pub(in crate::reconcile) fn signature_fault(
        &self,
        commit: CommitId,
    ) -> Option<&SignatureFault> {
        let is_rejected = |it: &&Candidate| matches!(it.progress, Progress::Failed(..));
        let candidate = self.candidate.as_ref().filter(is_rejected);
        candidate.filter(|it| it.commit == commit)?.fault.as_ref()
    }

    /// A commit could not be read before and can be now: if the builder still has it, it waits for the builder again.
    pub(in crate::reconcile) fn retry_build(&mut self, commit: CommitId) {
        if self.building() == Some(commit) {
            self.set_pending();
        }
    }

    /// Has a candidate built again that could not be read: what kept it from being read may have passed.
    pub(super) fn retry_unread(&mut self) {
        if self.candidate.as_ref().is_some_and(Candidate::is_unread) {
            self.set_pending();
        }
    }

    fn set_pending(&mut self) {
        let Some(candidate) = &mut self.candidate else { return };
        if let Progress::Failed(failed, reason) =
            std::mem::replace(&mut candidate.progress, Progress::Pending)
        {
            candidate.unread = Some((failed, reason));
        }
    }

    /// Returns whether the newest valid commit behind a rejected one is to be live: an operator resumed,
    /// maybe while it was built.
    pub(in crate::reconcile) fn falls_back(&self, rejected: CommitId) -> bool {
        self.candidate
            .as_ref()
            .is_some_and(|it| it.commit == rejected && it.fallback == Fallback::NewestValid)
    }

    /// Returns whether a candidate was rejected although an operator resumed, so that the newest valid commit behind it is
    /// to be live, and there is none.
    pub(in crate::reconcile) fn lacks_fallback(&self, commit: CommitId) -> bool {
        self.falls_back(commit) && self.last_failed().is_some()
    }

    pub(super) fn is_candidate(&self, commit: CommitId) -> bool {
        self.candidate.as_ref().is_some_and(|it| it.commit == commit)
    }
}

/// Returns the reason of a condition about a signature.
pub(in crate::reconcile) fn reason_of(fault: &SignatureFault) -> Reason {
    match fault {
        SignatureFault::Missing { .. } => Reason::SignatureMissing,
        SignatureFault::Invalid { .. } | SignatureFault::UnreadableKeys { .. } => {
            Reason::SignatureInvalid
        }
        SignatureFault::UnreadableCommit { .. } => Reason::CorruptObjects,
        SignatureFault::NotAllowed { .. } => Reason::SignerNotAllowed,
    }
}
