//! The control loop: from a branch of a repository to the snapshot that answers.
//!
//! Observe → fetch → verify → build and check → activate. [`Controller`] has the two threads that
//! do it and what they share; each stage notes what it found in `state`, and the conditions of
//! the status are computed there alone.

mod activate;
mod admission;
mod build;
mod builder;
mod cache;
mod clock;
mod commit_state;
mod commit_status;
mod controller;
mod edit_history;
mod fetcher;
mod head_check;
mod heads;
mod journal;
mod live;
mod lookup;
mod operate;
mod recover;
mod refs;
mod repack;
mod schedule;
mod settings;
mod snapshot_cache;
mod state;
mod status;
mod storage;
mod supervise;
mod trial;
mod trigger;
mod turns;
mod write;

pub use build::{BuildError, Outcome, Rejected, SourceError, load, meant_files, source_files};
pub use commit_state::CommitState;
pub use commit_status::Reporting;
pub use controller::{Controller, LookupError, StartError, Threads};
pub use head_check::{HeadCheck, HeadChecker, HeadVerdict, check_head};
pub use journal::{Event, Journal, PushedWrite, Record, Stage};
pub use lookup::Known;
pub use settings::{OnRewrite, OnStale, Policy, Settings, Target};
pub use state::{CheckInsTrouble, Freshness};
pub use status::{Active, Condition, ConditionKind, Observed, Reason, Status, Truth};
pub use storage::StorageError;
pub use trigger::Trigger;
pub use write::{
    DeliveryReceipt, WriteError, WriteMode, WriteRequest, WriteSettings, Writer, Written,
};
