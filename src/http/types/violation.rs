//! What a body of a request is missing.

use serde_json::Value;

/// A part of a body does not fit its schema.
///
/// Types of bodies are read by hand: the error is in the words of Puppet Enterprise, which clients know, and
/// `serde` would take a list for an object.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::http) struct SchemaViolation {
    /// The name of the schema.
    pub(in crate::http) schema: &'static str,
    /// The part.
    pub(in crate::http) submitted: Value,
    /// What is wrong with it.
    pub(in crate::http) error: String,
}
