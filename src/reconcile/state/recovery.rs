//! What becomes of the commit that was live before the restart, where the start could not make it live.

use std::time::Instant;

use super::{Candidate, ReconcileState, RecoveryFault, Unrecovered};
use crate::git::SignatureFault;
use crate::model::CommitId;
use crate::reconcile::trigger::Trigger;

impl ReconcileState {
    /// The commit that was live before the restart is rejected now.
    pub(in crate::reconcile) fn recovery_failed(
        &mut self,
        commit: CommitId,
        fault: SignatureFault,
        since: Instant,
    ) {
        let mut candidate = Candidate::new(commit, Trigger::Startup, since);
        candidate.reject_signature(fault);
        self.candidate = Some(candidate);
    }

    /// The commit that was live before the restart is not live now.
    pub(in crate::reconcile) fn note_unrecovered(
        &mut self,
        commit: CommitId,
        fault: RecoveryFault,
    ) {
        self.unrecovered = Some(Unrecovered { commit, fault, is_allowed: false });
    }

    /// Returns the commit that was live before the restart, if keys decide about it and none is live.
    pub(in crate::reconcile) fn unrecovered_by_keys(&self) -> Option<CommitId> {
        let unrecovered = self.unrecovered.as_ref().filter(|_| self.live.is_none())?;
        matches!(unrecovered.fault, RecoveryFault::Signature(_)).then_some(unrecovered.commit)
    }

    /// The signature of the commit that was live before the restart was checked again.
    pub(in crate::reconcile) fn unrecovered_verified(
        &mut self,
        commit: CommitId,
        verdict: Result<(), SignatureFault>,
    ) {
        if let Some(unrecovered) = self.unrecovered.as_mut().filter(|it| it.commit == commit) {
            unrecovered.is_allowed = verdict.is_ok();
            if let Err(fault) = verdict {
                unrecovered.fault = RecoveryFault::Signature(fault);
            }
        }
    }

    /// Returns whether the commit that was live before the restart waits for the builder.
    pub(in crate::reconcile) fn has_recovery(&self) -> bool {
        self.live.is_none() && self.unrecovered.as_ref().is_some_and(|it| it.is_allowed)
    }

    /// Hands the commit that was live before the restart to the builder, if it waits.
    pub(in crate::reconcile) fn take_recovery(&mut self) -> Option<CommitId> {
        let unrecovered = self.unrecovered.as_mut().filter(|it| it.is_allowed)?;
        unrecovered.is_allowed = false;
        self.live.is_none().then_some(unrecovered.commit)
    }
}
