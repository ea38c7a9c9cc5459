//! The control loop: from a branch of a repository to the snapshot that answers.

mod build;
mod controller;
mod status;

pub use build::{BuildError, Cache, Outcome, Rejected, build, load, source_files};
pub use controller::{Controller, LookupError, Settings, StartError, Target};
pub use status::{Active, Condition, Observed, Status};
