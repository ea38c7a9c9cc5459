//! Commit statuses: the forge shows what the daemon found out about commits.
//!
//! The stages note events in the journal; from there a thread of its own makes statuses and posts
//! them, each once, with retries until the forge takes it. No stage waits for the forge. What was
//! posted is noted as well, so a restart goes on where the last process stopped.

mod queue;
mod reporter;
mod verdict;

pub(super) use queue::StatusQueue;
pub(super) use reporter::CommitStatusReporter;
pub(super) use verdict::{VALIDATE, Verdict};
