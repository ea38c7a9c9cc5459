//! What a node was classified by, as far as a line shows it.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::masking::{DataRoot, Masks};
use crate::mentioned::MentionedPaths;
use crate::model::{Node, map_memory};

/// What a node was classified by.
#[derive(Clone, Debug)]
pub enum DecisionInput {
    /// Facts and trusted data as they were received, each the text of an object.
    Received {
        /// The facts.
        fact: String,
        /// The trusted data.
        trusted: String,
    },
    /// A node with what rules mention.
    Restricted(Node),
}

impl DecisionInput {
    /// Returns about how many bytes it takes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Received { fact, trusted } => fact.len() + trusted.len(),
            // What rules mention is mostly small, but values may have facts of any size in them.
            Self::Restricted(Node { fact, trusted, .. }) => map_memory(fact) + map_memory(trusted),
        }
    }
}

/// What a line shows of the input.
#[derive(Debug, Serialize)]
pub(super) struct ShownInput {
    pub(super) name: String,
    pub(super) fact: Map<String, Value>,
    pub(super) trusted: Map<String, Value>,
    /// Where a mask has replaced a value, as JSON pointers into the line.
    #[serde(skip)]
    pub(super) masked: Vec<String>,
}

impl ShownInput {
    /// Returns the node with what is shown of it.
    pub(super) fn node(&self) -> Node {
        let Self { name, fact, trusted, .. } = self;
        Node { name: name.clone(), fact: fact.clone(), trusted: trusted.clone() }
    }

    /// Returns what rules and values mention of an input, masked.
    pub(super) fn new(
        name: String,
        input: DecisionInput,
        mentioned: &MentionedPaths,
        masks: &Masks,
    ) -> Self {
        let (mut fact, mut trusted) = match input {
            // A body that was classified can be read.
            DecisionInput::Received { fact, trusted } => {
                mentioned.keep_text(&fact, &trusted).unwrap_or_default()
            }
            DecisionInput::Restricted(Node { fact, trusted, .. }) => (fact, trusted),
        };
        let mut masked = Vec::new();
        for (root, key, map) in
            [(DataRoot::Facts, "fact", &mut fact), (DataRoot::Trusted, "trusted", &mut trusted)]
        {
            masks.mask_map(root, map, &mut |path| masked.push(pointer(key, path)));
        }
        Self { name, fact, trusted, masked }
    }
}

/// Writes a JSON pointer into the line.
fn pointer(root: &str, path: &[String]) -> String {
    let mut pointer = format!("/input/{root}");
    for key in path {
        pointer.push('/');
        pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
    }
    pointer
}
