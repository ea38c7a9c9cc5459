//! Fetching everything again, where objects of the mirror are damaged or missing.

use super::clock::Now;
use super::recorder::Recorder;
use super::shared_state::SharedState;
use super::source::Source;

/// Fetches everything into a fresh mirror if objects are damaged, unless that was done just now: objects of the remote may
/// be damaged as well, so that it is tried again after pauses that grow. Returns whether it was done. Blocking.
pub(super) fn refetch_if_due(source: &Source, state: &SharedState, recorder: &Recorder) -> bool {
    // It may take minutes: what another thread did meanwhile counts.
    let _one_at_a_time = source.lock_refetch();
    let Some(cause) = state.lock().begin_refetch(Now::read().monotonic) else { return false };
    let cause = cause.as_str();
    let kept = recorder.kept_commits();
    match source.refetch(&kept) {
        Ok(()) => {
            tracing::warn!(cause, "everything was fetched again into a fresh mirror");
            state.lock().fetched_again(Now::read().monotonic);
            state.notify();
            true
        }
        // The end interrupts it, and the next start fetches everything.
        Err(_) if state.lock().stopping => false,
        Err(error) => {
            tracing::warn!(cause, %error, "everything cannot be fetched again");
            state.lock().refetch_failed(Now::read().monotonic);
            false
        }
    }
}
