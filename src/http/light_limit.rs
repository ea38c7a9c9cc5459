//! Which computations are light, by what they have turned out to take.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::rule::search_steps;

/// The steps of searches that a light computation takes at most: one or two milliseconds.
const STEPS: u64 = 200_000;

/// What a request weighs at least: each has a name, and a path.
const LEAST: usize = 256;

/// After how many short computations in a row, of a weight that would be light otherwise, the limit rises.
const IN_A_ROW: u32 = 1_000;

/// The weight from which a computation is not light any more.
///
/// How long it takes is mostly a matter of how much there is to read. But patterns that have to be backtracked take a
/// thousand times as long for it, and which of them are asked about which facts is not known before. So the limit falls
/// when a computation has taken long, to the weight of one that would not, and doubles when none has for a while.
#[derive(Debug)]
pub(super) struct LightLimit {
    most: usize,
    now: AtomicUsize,
    short: AtomicU32,
}

impl LightLimit {
    pub(super) fn new(most: usize) -> Self {
        Self { most, now: AtomicUsize::new(most), short: AtomicU32::new(0) }
    }

    /// Returns whether a computation of a weight is light.
    pub(super) fn admits(&self, weight: usize) -> bool {
        weight < self.now.load(Ordering::Relaxed)
    }

    /// Runs a computation, and takes notice of how long its searches were.
    pub(super) fn measured<T>(&self, weight: usize, work: impl FnOnce() -> T) -> T {
        let before = search_steps();
        let done = work();
        let steps = search_steps().wrapping_sub(before);
        if steps > STEPS {
            self.fall(weight, steps);
        } else if self.now.load(Ordering::Relaxed) < self.most {
            self.rise(weight);
        }
        done
    }

    fn fall(&self, weight: usize, steps: u64) {
        let light = (weight.max(LEAST) as u64).saturating_mul(STEPS) / steps;
        self.short.store(0, Ordering::Relaxed);
        self.now.fetch_min(usize::try_from(light).unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    fn rise(&self, weight: usize) {
        let now = self.now.load(Ordering::Relaxed);
        // Those that are light all the same say nothing of the others.
        if weight >= now && self.short.fetch_add(1, Ordering::Relaxed) + 1 >= IN_A_ROW {
            self.short.store(0, Ordering::Relaxed);
            self.now.store((now * 2).max(1).min(self.most), Ordering::Relaxed);
        }
    }
}
