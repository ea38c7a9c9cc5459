//! A node that is answered: most answers need nothing of it but its name.

use std::cell::OnceCell;

use super::Request;
use crate::classification::{FactReference, FactSource};
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

    /// Returns what values mention, which is parsed when it is asked for.
    pub(super) fn mentioned(self, paths: &'n MentionedPaths) -> FactsInValues<'n> {
        FactsInValues { of: self, paths, node: OnceCell::new() }
    }

    /// Returns the node with what is mentioned.
    fn restricted(&self, paths: &MentionedPaths) -> Node {
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

/// The facts of a node that values mention.
#[derive(Debug)]
pub(super) struct FactsInValues<'n> {
    of: AnsweredNode<'n>,
    paths: &'n MentionedPaths,
    node: OnceCell<Node>,
}

impl FactSource for FactsInValues<'_> {
    fn text(&self, reference: &FactReference) -> Option<&str> {
        match self.of.0 {
            Source::Request(_, request) => request.received.plain(reference.segments()),
            Source::Node(_) => None,
        }
    }

    fn node(&self) -> &Node {
        self.node.get_or_init(|| self.of.restricted(self.paths))
    }
}
