//! What a thread computes: tests that measure must hold whatever else the machine does.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Returns what this thread computes for a call.
pub(crate) fn computed_for(call: impl FnOnce()) -> Duration {
    let before = computed();
    call();
    computed().saturating_sub(before)
}

fn computed() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}
