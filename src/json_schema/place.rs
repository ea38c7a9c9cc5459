//! Where a part of a document stands.

use crate::document::{Content, Node, Span};

/// Returns where the part stands that JSON pointer tokens lead to, as far as they lead; a part of a
/// mapping stands at its key.
pub(super) fn key_span(node: &Node, tokens: &[String]) -> Span {
    let mut found = (node, node.span);
    for token in tokens {
        let below = match &found.0.content {
            Content::Mapping(_) => found.0.entry(token).map(|it| (&it.value, it.key_span)),
            Content::Sequence(elements) => {
                let index = token.parse::<usize>().ok();
                index.and_then(|it| elements.get(it)).map(|it| (it, it.span))
            }
            Content::Scalar(_) => None,
        };
        let Some(below) = below else { break };
        found = below;
    }
    found.1
}

/// Returns the part of a document that JSON pointer tokens lead to.
pub(super) fn part<'n>(node: &'n Node, tokens: &[String]) -> Option<&'n Node> {
    tokens.iter().try_fold(node, |node, token| match &node.content {
        Content::Mapping(_) => node.get(token),
        Content::Sequence(elements) => elements.get(token.parse::<usize>().ok()?),
        Content::Scalar(_) => None,
    })
}
