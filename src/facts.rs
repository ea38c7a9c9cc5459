//! Facts of nodes, in every form in which people and Puppet keep them.

mod read;

pub use read::{FactsError, NodeFacts, read_facts, with_certname};
