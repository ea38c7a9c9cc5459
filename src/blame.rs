//! Blame: after which commit of a branch each value of a node's answer first came out.
//!
//! The walk goes back from a commit along first parents, with the facts that the node has now. A commit
//! whose changes cannot concern the node is passed without being built, whether it is valid or not; where a
//! value ends, only a valid commit is named, since no other ever answered.

mod concerned_nodes;
mod inputs;
mod line;
mod walk;

pub use concerned_nodes::{ConcernedNodes, may_be_in, paths_of};
pub use inputs::Inputs;
pub use line::lines_of;
pub use walk::{BlamedBranch, KnownOrigins, Older, Origin, Walked, oldest_valid, walk};
