//! Where the store is, and how much it keeps.

use std::path::PathBuf;

use super::database::StoreLimits;
use super::location::StoreLocation;

/// Where and how much is kept.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// Where.
    pub location: StoreLocation,
    /// The file of an older version, which is imported once.
    pub former: Option<PathBuf>,
    /// How many bytes of the file are kept in memory.
    pub cache: usize,
    /// How much is kept.
    pub limits: StoreLimits,
}
