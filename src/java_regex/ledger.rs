//! What the matchers in linear time may take of memory, in all.
//!
//! Their library does not say how large one is. So each is charged by an upper bound of what its
//! automaton can take, before it is made.

use std::sync::atomic::{AtomicUsize, Ordering};

/// About how many bytes one step of a pattern takes in an automaton, at the most: a set of code points
/// is a tree over the bytes of their encodings.
const STEP_BYTES: usize = 1 << 10;

/// The most bytes of the automaton of one pattern; larger patterns are backtracked.
pub(super) const PATTERN_BYTES: usize = 1 << 20;

/// The most bytes of states that one search remembers; beyond, it forgets them and goes on.
pub(super) const CACHE_BYTES: usize = 256 << 10;

/// The automatons of all patterns in use. What searches remember takes about half as much again. It is
/// twice what the 2,400 patterns of an estate of 10,000 groups take at 20 steps each.
pub(super) static AUTOMATONS: Ledger = Ledger::new(96 << 20);

/// Memory that is shared out.
#[derive(Debug)]
pub(super) struct Ledger {
    spent: AtomicUsize,
    most: usize,
}

/// A part of it, given back when this is dropped.
#[derive(Debug)]
pub(super) struct Charge<'l> {
    ledger: &'l Ledger,
    bytes: usize,
}

impl Ledger {
    const fn new(most: usize) -> Self {
        Self { spent: AtomicUsize::new(0), most }
    }

    /// Charges a pattern of so many steps; `None` if that is more than is left.
    pub(super) fn charge(&self, steps: usize) -> Option<Charge<'_>> {
        let bytes = steps.saturating_mul(STEP_BYTES).min(PATTERN_BYTES);
        let add = |spent: usize| spent.checked_add(bytes).filter(|it| *it <= self.most);
        self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Charge { ledger: self, bytes })
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        self.ledger.spent.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_can_be_charged_again() {
        let ledger = Ledger::new(2 * PATTERN_BYTES);
        let large = ledger.charge(usize::MAX).unwrap();
        let small = ledger.charge(24).unwrap();
        assert_eq!((large.bytes, small.bytes), (PATTERN_BYTES, 24 << 10));
        assert!(ledger.charge(50_000).is_none());
        drop(small);
        let second = ledger.charge(50_000).unwrap();
        assert!(ledger.charge(1).is_none());
        drop((large, second));
        assert_eq!(ledger.spent.load(Ordering::Relaxed), 0);
    }
}
