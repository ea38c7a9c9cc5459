//! A node that is answered: most answers need nothing of it but its name.

use super::Request;
use crate::mentioned::MentionedPaths;
use crate::model::Node;

/// The name of a node, and its facts, which are read only if values mention some.
#[derive(Clone, Copy, Debug)]
pub struct AnsweredNode<'n>(Source<'n>);

#[derive(Clone, Copy, Debug)]
enum Source<'n> {
    /// What was read of a request.
    Request(&'n str, &'n Request<'n>),
    /// A node.
    Node(&'n Node),
}

impl<'n> AnsweredNode<'n> {
    /// Takes the facts of a request.
    pub fn received(name: &'n str, request: &'n Request<'n>) -> Self {
        Self(Source::Request(name, request))
    }

    pub(super) fn name(&self) -> &'n str {
        match self.0 {
            Source::Request(name, _) => name,
            Source::Node(node) => &node.name,
        }
    }

    /// Returns the node with what is mentioned.
    pub(super) fn restricted(&self, paths: &MentionedPaths) -> Node {
        match self.0 {
            _ if paths.is_empty() => Node::named(self.name()),
            // A body that was read can be parsed.
            Source::Request(name, it) => {
                it.facts_in_values(name).unwrap_or_else(|| Node::named(name))
            }
            Source::Node(node) => paths.keep(node),
        }
    }
}

impl<'n> From<&'n Node> for AnsweredNode<'n> {
    fn from(node: &'n Node) -> Self {
        Self(Source::Node(node))
    }
}
