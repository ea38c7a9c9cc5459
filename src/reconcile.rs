//! The control loop: from a branch of a repository to the snapshot that answers.
//!
//! Fetch → verify → build → activate. [`Controller`] runs the threads; each stage is a struct of its
//! own that `stages` gives what it needs, and notes what it found in `state`, which decides what may be
//! live and computes the conditions of the status.

mod activator;
mod build;
mod build_queue;
mod builder;
mod clock;
mod commit_state;
mod commit_status;
mod controller;
mod edit_history;
mod errors;
mod fetcher;
mod file_costs;
mod head_check;
mod journal;
mod live;
mod lookup;
mod operator;
mod other_refs;
mod outcome;
mod policy;
mod pull_requests;
mod read;
mod reading_cache;
mod recorder;
mod recovery;
mod repacker;
mod schedule;
mod settings;
mod shared_state;
mod snapshot_cache;
mod snapshot_store;
mod source;
mod source_files;
mod stages;
mod state;
mod status;
mod supervise;
mod tree_files;
mod trigger;
mod verifier;
mod write;

#[cfg(test)]
#[path = "../tests/simulation/mod.rs"]
mod simulation;

pub use commit_state::CommitState;
pub use controller::{Controller, Threads};
pub use errors::{LookupError, StorageError};
pub use head_check::{HeadCheck, HeadChecker, check_head};
pub use journal::{Event, Journal, Record, Stage};
pub use lookup::CommitDetails;
pub use outcome::Outcome;
pub use policy::{OnRewrite, OnStale, Policy};
pub use read::load;
pub use settings::{Reporting, Settings};
pub use source::Target;
pub use source_files::{SourceError, meant_files, source_files};
pub use state::{CheckInsTrouble, Freshness};
pub use status::{
    ActiveCommit, Condition, ConditionStatus, FailedCommit, FailureCause, Reason, Status,
};
pub use trigger::Trigger;
pub use write::{WriteError, WriteMode, WriteRequest, WriteSettings, Writer, Written};
