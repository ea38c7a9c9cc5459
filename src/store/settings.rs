//! Where the store is, and how much it keeps.

use std::path::PathBuf;

use super::database::StoreLimits;
use super::location::StoreLocation;

/// Where and how much is kept.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// Where.
    pub location: StoreLocation,
    /// Whether the file has its place in the data directory: what cannot be used there is put aside. Elsewhere it may be of
    /// others, so only a file is put aside to which a store was written before.
    pub is_own_place: bool,
    /// The file of an older version, which is imported once.
    pub former: Option<PathBuf>,
    /// How many bytes of the file are kept in memory.
    pub cache: usize,
    /// How much is kept.
    pub limits: StoreLimits,
}
