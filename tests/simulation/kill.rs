//! Kills between any two effects: an effect burns the fuse, and the daemon dies when it has burnt down.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How many more effects the daemon lives through; clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Fuse(Arc<AtomicU32>);

/// The daemon was killed.
#[derive(Debug)]
pub(super) struct Killed;

impl Fuse {
    /// Has the daemon die after so many effects.
    pub(super) fn light(&self, effects: u32) {
        self.0.store(effects, Ordering::Relaxed);
    }

    /// Has it live.
    pub(super) fn put_out(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// An effect took place.
    pub(super) fn burn(&self) {
        let left = self.0.load(Ordering::Relaxed);
        if left > 0 {
            self.0.store(left - 1, Ordering::Relaxed);
            if left == 1 {
                resume_unwind(Box::new(Killed));
            }
        }
    }
}

/// Runs a step of the daemon, which may be killed in it.
///
/// # Errors
///
/// Returns that it was killed. Any other panic goes on.
pub(super) fn until_killed<T>(step: impl FnOnce() -> T) -> Result<T, Killed> {
    catch_unwind(AssertUnwindSafe(step)).map_err(|panic| match panic.downcast::<Killed>() {
        Ok(killed) => *killed,
        Err(other) => resume_unwind(other),
    })
}
