//! JSON Schemas that a repository has for its own values.
//!
//! [`SchemaSet::load`] reads the files that settings name, and what they refer to, from one commit: no
//! `$ref` leads out of it, and nothing is fetched. What a schema can cost is worked out before it is
//! used ([`graph`]), so that neither a schema nor a value makes validation slow or deep. A [`Schema`]
//! then says of a value whether it holds, and where not.

mod bundle;
mod compile;
mod cost;
mod documents;
mod file;
mod graph;
mod keywords;
mod library;
mod location;
mod looks;
mod message;
mod misspelt;
mod place;
mod schema;
mod set;
mod source;
mod violation;

pub use bundle::{SchemaBundle, reference, to_prefix_items};
pub use schema::Schema;
pub use set::SchemaSet;
pub use source::{SchemaRequest, SchemaSource};
pub use violation::{FaultyPart, Violation};
