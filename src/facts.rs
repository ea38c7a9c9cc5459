//! Facts of nodes, in every form in which people and Puppet keep them.

mod extensions;
mod read;

pub use extensions::{extension_name, extension_text};
pub use read::{FactsError, NodeFacts, read_facts, with_certname};
