//! Whether rules can hold together, shown by a node.
//!
//! Rules are compiled into formulas over shared variables (the paths) and tests. A search through
//! the branches of `or` collects what is asked of each variable; [`choice`] finds a value that meets
//! all of it, and the values together are the node. What `trusted.certname` says is what `name`
//! says: a certificate is issued to one name.

mod choice;
mod compile;
mod formula;
mod number_pattern;
mod outline;
mod sets;
mod shape;
mod solver;
mod test_key;
mod witness;

pub use formula::Formula;
pub use outline::Outline;
pub use solver::{Satisfiability, Solver};

#[cfg(test)]
mod tests;
