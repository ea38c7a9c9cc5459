//! The node that is classified.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How deep lists and objects of facts and trusted data may lie in each other: what is deeper is not read. So a path
/// with more segments behind its root leads to nothing on any node.
pub const FACT_DEPTH: usize = 200;

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
}
