//! What one file may cost.

/// What one file may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The size of a file in bytes.
    pub file_bytes: u64,
    /// The levels of lists and mappings.
    pub depth: usize,
    /// The values that aliases may add.
    pub alias_nodes: usize,
    /// The bytes of text that aliases may add: one alias of a long string is one value.
    pub alias_bytes: usize,
    /// The faults after which reading ends.
    pub faults: usize,
}

impl Limits {
    /// The limits of a group repository: 1 MiB, 64 levels; 50,000 values and 4 MiB by aliases; 1,000
    /// faults.
    pub const DEFAULT: Self = Self {
        file_bytes: 1 << 20,
        depth: 64,
        alias_nodes: 50_000,
        alias_bytes: 4 << 20,
        faults: 1_000,
    };
}
