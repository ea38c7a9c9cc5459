//! Facts of nodes, in every form in which people and Puppet keep them.

mod cache;
mod extensions;
mod file;
mod read;
mod trusted;

pub use cache::read_cached;
pub use extensions::ExtensionNames;
pub use file::{FILE_BYTES, read_file};
pub use read::{FactsError, NodeFacts, read_facts, with_certname};
pub use trusted::{CertificateFacts, trusted_data};
