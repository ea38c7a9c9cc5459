//! Facts of nodes, in every form in which people and Puppet keep them.

mod cache;
mod directory;
mod extensions;
mod file;
mod read;
mod source;
mod text;
mod trusted;

pub use directory::{DirectoryListing, FactsDirectory, list_files, newest_facts};
pub use extensions::{ExtensionNames, is_authorisation, usual_extension_name};
pub use file::{FILE_BYTES, read_file, too_long};
pub use read::{FactsError, NodeFacts, is_envelope, read_facts};
pub use source::{Listed, ListedNode, NamedNode, NodeSource, NodeSourceError, RowRoom, Unlimited};
pub use text::WantedFacts;
pub use trusted::{CertificateFacts, trusted_data, with_trusted_data};
