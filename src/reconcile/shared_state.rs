//! The state of the loop, as its threads share it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::clock::Now;
use super::state::ReconcileState;
use super::trigger::Trigger;
use crate::git::PushError;
use crate::model::CommitId;

/// The state behind its lock, and what wakes the threads that wait for a change of it.
#[derive(Debug)]
pub(super) struct SharedState {
    state: Mutex<ReconcileState>,
    changed: Condvar,
    /// Whether the daemon stops, for work that takes long and holds no lock.
    stopping: AtomicBool,
}

impl SharedState {
    pub(super) fn new(state: ReconcileState) -> Self {
        Self { state: Mutex::new(state), changed: Condvar::new(), stopping: AtomicBool::new(false) }
    }

    /// Locks the state. The lock is never held across IO, nor while history is read: handlers of requests wait for it.
    pub(super) fn lock(&self) -> MutexGuard<'_, ReconcileState> {
        self.state.lock()
    }

    #[cfg(test)]
    pub(super) fn is_locked(&self) -> bool {
        self.state.is_locked()
    }

    /// Wakes the threads that wait for a change.
    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits as long as something holds. Blocking.
    pub(super) fn wait_while(
        &self,
        holds: impl FnMut(&mut ReconcileState) -> bool,
    ) -> MutexGuard<'_, ReconcileState> {
        #[cfg(test)]
        run_instead_of_waiting();
        let mut state = self.lock();
        self.changed.wait_while(&mut state, holds);
        state
    }

    /// Waits as long as something holds, at most so long. Blocking.
    pub(super) fn wait_while_for(
        &self,
        longest: Duration,
        holds: impl FnMut(&mut ReconcileState) -> bool,
    ) -> MutexGuard<'_, ReconcileState> {
        let mut state = self.lock();
        self.changed.wait_while_for(&mut state, holds, longest);
        state
    }

    /// Waits for the next change, at most so long. Blocking.
    pub(super) fn wait_for(&self, state: &mut MutexGuard<'_, ReconcileState>, longest: Duration) {
        self.changed.wait_for(state, longest);
    }

    /// Waits until the daemon stops, at most so long; returns whether it stops. Blocking.
    pub(super) fn stops_within(&self, longest: Duration) -> bool {
        self.wait_while_for(longest, |it| !it.stopping).stopping
    }

    /// Waits until no candidate is being built. Blocking.
    pub(super) fn wait_until_idle(&self) -> MutexGuard<'_, ReconcileState> {
        self.wait_while(|it| it.is_deciding() && !it.stopping)
    }

    /// Requests a fetch.
    pub(super) fn request_fetch(&self, trigger: Trigger) {
        self.lock().requested_fetch = Some(trigger);
        self.notify();
    }

    /// Has everything fetched again if a push failed at damaged objects of the mirror.
    pub(super) fn note_push_failed(&self, error: &PushError) {
        self.lock().push_failed(error);
        self.notify();
    }

    /// Requests a fetch, and more of them until the remote shows a commit.
    pub(super) fn expect_commit(&self, commit: CommitId, was_head: bool) {
        self.lock().expect_commit(commit, was_head, Now::read());
        self.request_fetch(Trigger::Webhook);
    }

    /// Returns whether the daemon stops.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Ends the threads that wait for changes.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.lock().stopping = true;
        self.notify();
    }
}

/// A push that the status shows, until it is dropped.
pub(super) struct ShownPush<'s>(&'s SharedState);

impl SharedState {
    /// Shows in the status how long a push takes.
    pub(super) fn show_push(&self) -> ShownPush<'_> {
        self.lock().push_began(Now::read());
        ShownPush(self)
    }
}

impl Drop for ShownPush<'_> {
    fn drop(&mut self) {
        self.0.lock().push_ended();
    }
}

#[cfg(test)]
thread_local! {
    static INSTEAD_OF_WAITING: std::cell::RefCell<Option<std::rc::Rc<dyn Fn()>>> =
        const { std::cell::RefCell::new(None) };
}

/// Has this thread do the work of another one where it would wait for it: a simulation has no threads.
#[cfg(test)]
pub(super) fn instead_of_waiting(work: Option<std::rc::Rc<dyn Fn()>>) {
    INSTEAD_OF_WAITING.set(work);
}

#[cfg(test)]
fn run_instead_of_waiting() {
    let work = INSTEAD_OF_WAITING.with_borrow(Clone::clone);
    if let Some(work) = work {
        work();
    }
}
