//! Requests that submit facts.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// What a client submits of a node: facts and trusted data. Unknown keys are ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Node)]
pub struct NodeBody {
    /// Facts; `facts` stands for it, and a facts envelope of Puppet's is unwrapped.
    #[schema(value_type = Object, required = false)]
    pub fact: Map<String, Value>,
    /// Trusted data.
    #[schema(value_type = Object, required = false)]
    pub trusted: Map<String, Value>,
    /// Which run of the agent it is for.
    #[schema(nullable = false)]
    pub transaction_uuid: Option<String>,
}

/// Facts as Foreman's clients send them. Unknown keys are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FactsUpload {
    /// The certname; without it, `name` is.
    #[schema(nullable = false)]
    pub certname: Option<String>,
    /// The certname, where the body has no other.
    #[schema(nullable = false)]
    pub name: Option<String>,
    /// The facts.
    #[schema(value_type = Object)]
    pub facts: Map<String, Value>,
}

/// Facts were stored, as Foreman's clients are told it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoredFacts {
    /// Always 1: clients expect a number.
    pub id: u32,
    /// The certname.
    pub name: String,
    /// Where they were stored.
    pub message: String,
}
