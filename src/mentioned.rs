//! The facts and trusted data that the rules of a snapshot mention.
//!
//! A node has hundreds of facts, and rules mention a few of them. A node that is *restricted* to the mentioned
//! paths gets the same answer from these rules as the whole node, down to the error.

mod differences;
mod known;
mod paths;
mod staying;
mod text;
mod tree;
mod value;

pub use differences::{FactDifference, differences};
pub use paths::{MentionedPaths, MentionedPathsError};

#[cfg(test)]
mod tests;
