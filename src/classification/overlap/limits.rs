//! How much is searched.

/// How much is searched.
#[derive(Clone, Copy, Debug)]
pub(super) struct SearchLimits {
    /// Steps of all kinds; the largest search takes some seconds on a small machine.
    pub(super) steps: u64,
    /// Pairs that conflict, of all causes.
    pub(super) pairs: usize,
    /// Pairs that conflict, of one cause.
    pub(super) pairs_of_cause: usize,
    /// Pairs that conflict for the values of the same two groups.
    pub(super) pairs_of_values: usize,
}

pub(super) const LIMITS: SearchLimits =
    SearchLimits { steps: 100_000_000, pairs: 10_000, pairs_of_cause: 300, pairs_of_values: 12 };
