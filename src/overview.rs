//! What the console shows of a daemon beside its status: the replicas that share its store, and how counts went over
//! time.
//!
//! One thread reads the store at intervals ([`sampler`]), so that no page and no status waits for it. What it saw is
//! kept in memory, bounded ([`samples`]); a restart begins again.

mod sampler;
mod samples;

pub use sampler::{ListedReplica, Overview, OwnReplica, StoreUse};
pub use samples::{CheckInRate, CommitShares};
