//! Objects on disk that cannot be read or written, and candidates that need them.

use super::ReconcileState;
use crate::reconcile::status::Reason;

impl ReconcileState {
    /// Objects are damaged: the next fetch fetches everything again, unless that was done for the same damage.
    pub(in crate::reconcile) fn note_damage(&mut self, message: String) {
        self.objects.note_damage(message);
    }

    /// Returns whether objects are to be fetched again.
    pub(in crate::reconcile) fn is_damaged(&self) -> bool {
        self.objects.damage().is_some()
    }

    /// Everything was fetched again: a candidate that could not be read is built again.
    pub(in crate::reconcile) fn fetched_again(&mut self) {
        self.objects.fetched_again();
        self.retry_unread();
    }

    /// The repository is not one that can be fetched again; its owner may have mended it.
    pub(in crate::reconcile) fn forget_damage(&mut self) {
        self.objects.forget_damage();
    }

    /// New objects cannot be written, or can be again.
    pub(in crate::reconcile) fn note_unwritten(&mut self, why: Option<(Reason, String)>) {
        self.objects.note_unwritten(why);
    }

    /// Returns whether new objects could not be written last.
    pub(in crate::reconcile) fn is_unwritable(&self) -> bool {
        self.objects.unwritten().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CommitId;
    use crate::reconcile::clock::Now;
    use crate::reconcile::journal::Stage;
    use crate::reconcile::policy::Policy;
    use crate::reconcile::state::{Candidate, SourceKind};
    use crate::reconcile::status::{ConditionKind, FailedCommit};
    use crate::reconcile::trigger::Trigger;

    fn conditions(state: &mut ReconcileState) -> Vec<(ConditionKind, Reason)> {
        let all = state.conditions(Now::read());
        let shown = all.into_iter().filter(|it| it.kind != ConditionKind::Ready);
        shown.map(|it| (it.kind, it.reason)).collect()
    }

    #[test]
    fn damage_is_a_condition_until_everything_is_fetched_again_once() {
        let now = Now::read();
        let mut state = ReconcileState::new(Policy::default(), SourceKind::Remote, now);
        let commit = CommitId::from_bytes([1; 20]);
        state.candidate = Some(Candidate::new(commit, Trigger::Poll, now.monotonic));
        let failed = FailedCommit::as_a_whole(commit, Stage::Load, &"it is cut short");
        state.build_failed(failed, Reason::CorruptObjects);
        state.note_damage("a is cut short".to_owned());
        let rejected = (ConditionKind::CandidateRejected, Reason::CorruptObjects);
        let damaged = (ConditionKind::FetchFailed, Reason::CorruptObjects);
        let found = conditions(&mut state);
        assert!(found.contains(&rejected) && found.contains(&damaged), "{found:?}");
        state.fetched_again();
        assert!(state.has_pending(), "it is built again");
        assert!(!conditions(&mut state).contains(&damaged));
        state.note_damage("a is cut short".to_owned());
        assert!(!state.is_damaged(), "that did not help, and would not");
        state.note_damage("b is cut short".to_owned());
        assert!(state.is_damaged());
        state.fetched_again();
        state.activated(commit, None, None);
        state.note_damage("b is cut short".to_owned());
        assert!(state.is_damaged(), "it was mended, and is damaged again");
    }

    #[test]
    fn everything_is_fetched_again_for_so_much_damage_until_a_commit_is_live() {
        let mut state = ReconcileState::new(Policy::default(), SourceKind::Remote, Now::read());
        let mut fetches = 0;
        // Objects of the remote are damaged as well: each build meets another of them.
        for number in 0..100 {
            state.note_damage(format!("{} is cut short", number % 32));
            if state.is_damaged() {
                fetches += 1;
                state.fetched_again();
            }
        }
        assert_eq!(fetches, 16);
        state.activated(CommitId::from_bytes([1; 20]), None, None);
        state.note_damage("a is cut short".to_owned());
        assert!(state.is_damaged());
    }

    #[test]
    fn a_repository_that_takes_no_objects_is_a_condition() {
        let mut state = ReconcileState::new(Policy::default(), SourceKind::Remote, Now::read());
        state.note_unwritten(Some((Reason::DiskFull, "no room".to_owned())));
        assert_eq!(conditions(&mut state), [(ConditionKind::StorageFailed, Reason::DiskFull)]);
        state.note_unwritten(None);
        assert_eq!(conditions(&mut state), []);
    }
}
