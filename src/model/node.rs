//! The node that is classified.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How deep lists and objects of facts and trusted data may lie in each other: what is deeper is not read. So a path
/// with more segments behind its root leads to nothing on any node.
pub const FACT_DEPTH: usize = 200;

/// The key of the certname in trusted data.
pub const CERTNAME: &str = "certname";

/// A node: its certname, what it says of itself (`fact`) and what its certificate proves
/// (`trusted`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The certname.
    pub name: String,
    /// The facts, untrusted.
    pub fact: Map<String, Value>,
    /// The trusted data.
    pub trusted: Map<String, Value>,
}

impl Node {
    /// The certname of a node of which only something else matters.
    pub const EXAMPLE: &'static str = "any.example.com";

    /// Creates a node of which only the certname is known.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Returns the node with its name for the trusted certname, as on a real server, where its trusted data has
    /// none.
    #[must_use]
    pub fn with_certname(mut self) -> Self {
        if !self.trusted.contains_key(CERTNAME) {
            self.trusted.insert(CERTNAME.to_owned(), self.name.clone().into());
        }
        self
    }
}
