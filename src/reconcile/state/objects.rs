//! Objects on disk that cannot be read or written, and candidates that need them.

use std::time::{Duration, Instant};

use super::{ReconcileState, SourceKind};
use crate::git::{FetchFailure, PushError};
use crate::reconcile::status::Reason;

/// Why everything is fetched again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reconcile) enum RefetchCause {
    /// Objects of the mirror cannot be read.
    DamagedHere,
    /// The last fetch brought objects on top of the mirror that cannot be used, or lack others.
    FailedFetch,
}

impl RefetchCause {
    /// Returns what is wrong, for the log.
    pub(in crate::reconcile) fn as_str(self) -> &'static str {
        match self {
            Self::DamagedHere => "objects on disk cannot be read",
            Self::FailedFetch => "the last fetch met damaged or missing objects",
        }
    }
}

impl ReconcileState {
    /// Objects are damaged: everything is fetched again.
    pub(in crate::reconcile) fn note_damage(&mut self, message: String) {
        self.objects.note_damage(message);
    }

    /// A push failed: if objects of the mirror are damaged, everything is fetched again.
    pub(in crate::reconcile) fn push_failed(&mut self, error: &PushError) {
        if let PushError::Failed(error) | PushError::Unknown(error) = error
            && error.failure == FetchFailure::CorruptObjects
        {
            self.note_damage(error.message.clone());
        }
    }

    /// Returns whether objects are to be fetched again.
    pub(in crate::reconcile) fn is_damaged(&self) -> bool {
        self.objects.damage().is_some()
    }

    /// Returns why everything is to be fetched again now, if it is, and notes that it begins.
    pub(in crate::reconcile) fn begin_refetch(&mut self, now: Instant) -> Option<RefetchCause> {
        let cause = match self.source {
            SourceKind::Local => None,
            SourceKind::Remote if self.is_damaged() => Some(RefetchCause::DamagedHere),
            SourceKind::Remote => self.has_met_damage().then_some(RefetchCause::FailedFetch),
        };
        let cause = cause.filter(|_| self.objects.until_refetch(now).is_zero());
        if cause.is_some() {
            self.objects.refetch_began(now);
        }
        cause
    }

    /// Returns whether the last fetch failed at damaged objects: they stay in the mirror, and the next one does not ask for
    /// them.
    fn has_met_damage(&self) -> bool {
        matches!(self.failure, Some((FetchFailure::CorruptObjects, _)))
    }

    /// Returns whether the next fetch deals with damaged objects.
    pub(in crate::reconcile) fn is_refetch_due(&self, now: Instant) -> bool {
        self.is_damaged() && self.objects.until_refetch(now).is_zero()
    }

    /// Returns how long to wait until everything is to be fetched again, if it is. Where fetches fail for another reason,
    /// their own retries do it.
    pub(in crate::reconcile) fn until_refetch(&self, now: Instant) -> Option<Duration> {
        let is_needed = self.has_met_damage() || self.is_damaged() && self.failure.is_none();
        let waits = self.source == SourceKind::Remote && is_needed;
        waits.then(|| self.objects.until_refetch(now))
    }

    /// Everything cannot be fetched again: it is tried later.
    pub(in crate::reconcile) fn refetch_failed(&mut self, now: Instant) {
        self.objects.refetch_ended(now);
    }

    /// Everything was fetched again: a candidate that could not be read is built again.
    pub(in crate::reconcile) fn fetched_again(&mut self, now: Instant) {
        self.objects.refetch_ended(now);
        self.objects.forget_damage();
        // It forgot which refs were skipped.
        self.other_refs_requested = true;
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
    use crate::git::FetchError;
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
    fn damage_is_a_condition_until_everything_is_fetched_again() {
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
        assert_eq!(state.begin_refetch(now.monotonic), Some(RefetchCause::DamagedHere));
        state.fetched_again(now.monotonic);
        assert!(state.has_pending(), "it is built again");
        assert!(state.other_refs_requested, "which refs are skipped is found out again");
        assert!(!conditions(&mut state).contains(&damaged));
    }

    /// Returns after how many seconds everything is fetched again, of so many.
    fn refetches(state: &mut ReconcileState, from: Instant, seconds: u64) -> Vec<u64> {
        let fetches = |second: &u64| {
            let now = from + Duration::from_secs(*second);
            let begins = state.begin_refetch(now).is_some();
            if begins {
                assert_eq!(state.begin_refetch(now), None, "one at a time");
                state.refetch_failed(now);
            }
            begins
        };
        (0..seconds).filter(fetches).collect()
    }

    #[test]
    fn everything_is_fetched_again_for_ever_with_pauses_that_grow_to_five_minutes() {
        let now = Now::read();
        let mut state = ReconcileState::new(Policy::default(), SourceKind::Remote, now);
        assert!(refetches(&mut state, now.monotonic, 1000).is_empty());
        state.note_damage("it is cut short".to_owned());
        let first = refetches(&mut state, now.monotonic, 1000);
        assert_eq!(first, [0, 2, 6, 14, 30, 62, 126, 254, 510, 810]);
        let later = now.monotonic + Duration::from_hours(24);
        assert_eq!(refetches(&mut state, later, 700), [0, 300, 600]);
        // Objects that are damaged now are others than those of before.
        state.activated(CommitId::from_bytes([1; 20]), None, None);
        assert_eq!(refetches(&mut state, later, 10), [0, 2, 6]);
        state.fetched_again(later);
        assert!(refetches(&mut state, later, 1000).is_empty());
    }

    #[test]
    fn a_fetch_that_fails_on_top_of_the_mirror_is_done_from_scratch_the_next_time() {
        let now = Now::read();
        let failed = |failure| {
            let mut state = ReconcileState::new(Policy::default(), SourceKind::Remote, now);
            state.fetch_failed(&FetchError { failure, message: String::new() });
            let left = state.until_refetch(now.monotonic);
            let done = refetches(&mut state, now.monotonic, 3);
            let last = now.monotonic + Duration::from_secs(2);
            (left, done, state.until_refetch(last))
        };
        // However long the interval is, whose length its own retries may have.
        let (now_at_once, pause) = (Some(Duration::ZERO), Some(Duration::from_secs(4)));
        assert_eq!(failed(FetchFailure::CorruptObjects), (now_at_once, vec![0, 2], pause));
        // A response that arrived damaged left nothing in the mirror.
        for failure in [FetchFailure::ConnectFailed, FetchFailure::MalformedResponse] {
            assert_eq!(failed(failure), (None, vec![], None), "its own retry does it: {failure:?}");
        }
    }

    #[test]
    fn damage_that_a_request_meets_is_mended_before_the_next_poll() {
        let now = Now::read();
        let mut state = ReconcileState::new(Policy::default(), SourceKind::Remote, now);
        assert_eq!(state.until_refetch(now.monotonic), None);
        state.note_damage("it is cut short".to_owned());
        assert_eq!(state.until_refetch(now.monotonic), Some(Duration::ZERO));
        assert_eq!(state.begin_refetch(now.monotonic), Some(RefetchCause::DamagedHere));
        assert_eq!(state.until_refetch(now.monotonic), Some(Duration::from_secs(2)));
        let mut local = ReconcileState::new(Policy::default(), SourceKind::Local, now);
        local.note_damage("it is cut short".to_owned());
        assert_eq!(local.until_refetch(now.monotonic), None);
        assert_eq!(local.begin_refetch(now.monotonic), None);
    }

    #[test]
    fn damage_that_a_push_meets_is_mended_as_well() {
        let now = Now::read();
        let failed = |failure| FetchError { failure, message: String::new() };
        let corrupt = || failed(FetchFailure::CorruptObjects);
        for (error, is_damage) in [
            (PushError::Failed(corrupt()), true),
            (PushError::Unknown(corrupt()), true),
            (PushError::Failed(failed(FetchFailure::Timeout)), false),
            (PushError::Moved, false),
            (PushError::Rejected(String::new()), false),
        ] {
            let mut state = ReconcileState::new(Policy::default(), SourceKind::Remote, now);
            state.push_failed(&error);
            assert_eq!(state.begin_refetch(now.monotonic).is_some(), is_damage, "{error:?}");
        }
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
