//! The blame of a node's answer over the commits of a repository.
//!
//! [`run`] classifies the node at a commit and walks back from it; [`commits`] are the commits as the walk sees
//! them, and [`cache`] keeps what a walk found for the next one. [`changes`] walks in the same way to list what changed.

mod cache;
mod changes;
mod commits;
mod memo;
mod node_files;
mod pages;
mod run;

pub use cache::BlameCache;
pub use changes::CommittedChange;
pub use pages::pages_of;
pub use run::{AskedNode, Blame, BlameError, BlamedValue, LocatedValue};

#[cfg(test)]
mod tests;
