//! The reconcile loop: from a branch of a repository to the snapshot that answers.
//!
//! As in Flux, the head of the branch is the only input, and the loop moves what is live towards it. Flux
//! applies a revision to a cluster; Clade compiles it to a snapshot and swaps that for the live one.
//!
//! # The way of a commit
//!
//! 1. A poll, a webhook, an operator or a write requests a fetch, with a [`trigger`]. [`fetcher`] fetches the
//!    branch through [`source`], a local repository or a remote with its mirror; [`schedule`] says when.
//! 2. [`state`] decides whether the head is a candidate: a pin, a rewritten history or a remote that lags may
//!    hold it. It is one value without IO, threads and clocks; [`shared_state`] puts it behind a lock, and [`ancestry`]
//!    reads the history that it decides by without that lock. The conditions of the [`status`] are computed from it.
//! 3. [`builder`] takes the candidate. [`verifier`] checks its signatures, and only it makes a
//!    `VerifiedCommit`; [`snapshot_store`] has it read, checked and compiled ([`build`](mod@build), one at a time through
//!    [`build_queue`]), and only it makes a `VerifiedSnapshot`. An [`outcome`] is a snapshot or findings.
//! 4. [`activator`] makes the snapshot live, if the state still allows it: under one lock, after the
//!    [`recorder`] has synced the [`journal`]. [`live`] has what answers.
//!
//! # Beside it
//!
//! - [`controller`] runs a thread for each stage and is what HTTP asks; [`stages`] composes the stages, each a
//!   struct with only what it needs. [`supervise`] restarts one that panics.
//! - [`recovery`] makes the commit live at the start that was live before; [`operator`] pins and resumes.
//! - [`write`](mod@write) turns writes of the API into commits, pushes them, and has the activator make them live.
//! - [`lookup`] answers about other commits; [`edit_history`] counts the edits of groups.
//! - [`commit_status`] posts verdicts to a forge, and [`pull_requests`] has heads checked in a process of its own
//!   ([`head_check`]). [`other_refs`] fetches the refs beside the branch, [`repacker`] keeps the mirror small.

// The way of a commit
mod activator;
mod ancestry;
mod blame;
mod build;
mod build_queue;
mod builder;
mod fetcher;
mod live;
mod live_recovery;
mod outcome;
mod schedule;
mod snapshot_store;
mod source;
mod state;
mod trigger;
mod verifier;

// What runs the stages, and what they share
mod boot_time;
mod clock;
mod contact_file;
mod controller;
mod errors;
mod journal;
mod pin_file;
mod policy;
mod recorder;
mod settings;
mod shared_state;
mod stages;
mod status;
mod supervise;

// Reading a commit
mod commit_tree;
mod file_costs;
mod meant_directory;
mod open_repositories;
mod read;
mod reading_cache;
mod schema_cache;
mod snapshot_cache;
mod source_files;
mod tree_files;

// Starts, operators, clients
mod attribution;
mod commit_state;
mod document_counts;
mod edit_file;
mod edit_history;
mod lookup;
mod operator;
mod recovery;
mod refetch;
mod write;

// Forges and the mirror
mod commit_status;
mod head_check;
mod head_history;
mod other_refs;
mod pull_requests;
mod repacker;

#[cfg(test)]
#[path = "../tests/simulation/mod.rs"]
mod simulation;

pub use attribution::{Attribution, Pin};
pub use blame::{
    AskedNode, Blame, BlameCache, BlameError, BlamedValue, CommittedChange, LocatedValue, pages_of,
};
pub use commit_state::CommitState;
pub use controller::{Controller, Threads};
pub use errors::LookupError;
pub use head_check::{HeadCheck, HeadChecker, check_head};
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use journal::fuzz_journal;
pub use journal::{Event, Journal, Record, Stage};
pub use live::LiveGuard;
pub use lookup::{CommitDetails, FollowedSnapshot};
pub use outcome::Outcome;
pub use policy::{OnRewrite, OnStale, Policy};
pub use read::load;
pub use settings::{Reporting, Settings};
pub use source::{Target, path_below};
pub use source_files::{SourceError, meant_files, source_files};
pub use state::{CheckInsTrouble, Freshness};
pub use status::{
    ActiveCommit, Condition, ConditionStatus, FailedCommit, FailureCause, Reason, Status,
};
pub use trigger::Trigger;
pub use write::{RightsCheck, WriteError, WriteMode, WriteRequest, WriteSettings, Writer, Written};
