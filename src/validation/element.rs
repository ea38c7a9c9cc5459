//! Where the parts of a rule are written.

use crate::document::{Node, Position, Span};

/// Returns the element that a path of indexes leads to.
pub(super) fn element<'n>(node: &'n Node, path: &[usize]) -> &'n Node {
    path.iter().fold(node, |node, index| node.elements().get(*index).unwrap_or(node))
}

/// Returns the place of some characters of a string, if it is written on one line and each of its
/// characters stands for itself; else the place of the whole string.
pub(super) fn part_of(node: &Node, from: usize, to: usize) -> Span {
    TextParts::of(node).span(from, to)
}

/// The places of parts of one string. Parts that are asked for in order take one pass over the string.
pub(super) struct TextParts<'n> {
    whole: Span,
    /// How many characters stand between the beginning of the string and its text; none if its characters do not
    /// stand for themselves.
    inset: Option<usize>,
    text: &'n str,
    length: usize,
    /// The characters before the part that was asked for last, and their bytes.
    before: (usize, usize),
}

impl<'n> TextParts<'n> {
    pub(super) fn of(node: &'n Node) -> Self {
        let Span { start, end } = node.span;
        let text = node.as_str().unwrap_or_default();
        let length = text.chars().count();
        let written = end.column.saturating_sub(start.column) as usize;
        let inset = match written.checked_sub(length) {
            Some(0) => Some(0),
            Some(2) => Some(1),
            _ => None,
        };
        let inset = inset.filter(|_| start.line == end.line);
        Self { whole: node.span, inset, text, length, before: (0, 0) }
    }

    /// Returns the place of some characters, or that of the string.
    pub(super) fn span(&mut self, from: usize, to: usize) -> Span {
        let Some(inset) = self.inset.filter(|_| from <= self.length) else { return self.whole };
        let (first, first_byte) = self.before(from);
        self.before = (first, first_byte);
        let (last, last_byte) = self.before(to.min(self.length));
        let start = self.whole.start;
        let shift = |characters: usize, bytes: usize| {
            let number = |it: usize| u32::try_from(it + inset).unwrap_or_default();
            Position {
                offset: start.offset + number(bytes),
                line: start.line,
                column: start.column + number(characters),
            }
        };
        Span { start: shift(first, first_byte), end: shift(last, last_byte) }
    }

    /// Returns so many characters with the bytes that they have, counted on from the last part.
    fn before(&self, characters: usize) -> (usize, usize) {
        let (known, bytes) = if self.before.0 <= characters { self.before } else { (0, 0) };
        let rest = self.text.get(bytes..).unwrap_or_default().chars();
        let more: usize = rest.take(characters - known).map(char::len_utf8).sum();
        (characters, bytes + more)
    }
}
