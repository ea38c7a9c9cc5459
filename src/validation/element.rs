//! Where the parts of a rule are written.

use crate::document::{Node, Position, Span};

/// Returns the element that a path of indexes leads to.
pub(super) fn element<'n>(node: &'n Node, path: &[usize]) -> &'n Node {
    path.iter().fold(node, |node, index| node.elements().get(*index).unwrap_or(node))
}

/// Returns the place of some characters of a string, if it is written on one line and each of its
/// characters stands for itself; else the place of the whole string.
pub(super) fn part_of(node: &Node, from: usize, to: usize) -> Span {
    let Span { start, end } = node.span;
    let text = node.as_str().unwrap_or_default();
    let length = text.chars().count();
    let written = (end.column.saturating_sub(start.column)) as usize;
    let inset = match written.checked_sub(length) {
        Some(0) => 0,
        Some(2) => 1,
        _ => return node.span,
    };
    if start.line != end.line || from > length {
        return node.span;
    }
    let shift = |characters: usize| {
        let bytes: usize = text.chars().take(characters).map(char::len_utf8).sum();
        let number = |it: usize| u32::try_from(it + inset).unwrap_or_default();
        Position {
            offset: start.offset + number(bytes),
            line: start.line,
            column: start.column + number(characters),
        }
    };
    Span { start: shift(from), end: shift(to.min(length)) }
}
