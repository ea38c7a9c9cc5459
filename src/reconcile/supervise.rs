//! Restarts stages of the loop that panic.
//!
//! A thread that is gone would leave the daemon serving an old commit, or writes waiting for ever, and
//! the status would not say why.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How long a stage rests after a panic.
const REST: Duration = Duration::from_secs(1);

/// Does some work; none if it panicked, which the log has with its place.
pub(super) fn supervised<T>(stage: &str, work: impl FnOnce() -> T) -> Option<T> {
    // What the stages share is consistent whenever a lock is free, and no lock is poisoned for them.
    let done = catch_unwind(AssertUnwindSafe(work)).ok();
    if done.is_none() {
        tracing::error!(
            stage,
            "a stage of the reconcile loop panicked, which is a defect of Clade"
        );
    }
    done
}

/// Runs a stage until it ends, and again after each panic, unless the daemon stops meanwhile.
pub(super) fn supervise(stage: &str, work: impl Fn(), stops_within: impl Fn(Duration) -> bool) {
    while supervised(stage, &work).is_none() {
        if stops_within(REST) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_stage_that_panics_begins_again_until_it_ends_or_the_daemon_stops() {
        let runs = Cell::new(0);
        let work = || {
            runs.set(runs.get() + 1);
            assert!(runs.get() >= 3, "the first two runs panic");
        };
        let rests = Cell::new(0);
        supervise("builder", work, |_| {
            rests.set(rests.get() + 1);
            false
        });
        assert_eq!((runs.get(), rests.get()), (3, 2));
        supervise("builder", || panic!("always"), |_| true);
    }
}
