//! How much work a thread has done in searches.

use std::cell::Cell;

/// How many bytes a search in linear time passes while a backtracker takes a step.
const BYTES: u64 = 8;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Returns how many steps searches have taken on this thread since it began. The count starts again behind the greatest
/// number.
pub fn steps_of_thread() -> u64 {
    STEPS.get()
}

/// Counts steps of a backtracker.
pub(super) fn count_steps(steps: u64) {
    STEPS.set(STEPS.get().wrapping_add(steps));
}

/// Counts a search in linear time.
pub(super) fn count_linear(bytes: usize) {
    count_steps(bytes as u64 / BYTES);
}
