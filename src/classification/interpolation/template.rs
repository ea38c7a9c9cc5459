//! A string as text and references.

use std::borrow::Cow;
use std::ops::Range;

use super::form::{self, Extent};
use super::illegal::{IllegalForm, IllegalReason};
use super::reference::FactReference;

/// How many references one string may have.
const REFERENCES: usize = 1_000;

/// A string into which facts are put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    pub(super) pieces: Vec<Piece>,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text, with `\$` as `$`.
    Text(String),
    /// What a node has at a place.
    Reference(FactReference),
}

impl Template {
    /// Parses a string; a string without `$` is not a template.
    pub fn parse(text: &str) -> Option<Self> {
        text.contains('$').then(|| Self::read(text, &mut |_| {}))
    }

    /// Returns about how many bytes of memory it takes.
    pub fn memory(&self) -> usize {
        const REFERENCE: usize = 160;
        let of_piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.len(),
            Piece::Reference(_) => REFERENCE,
        };
        self.pieces.iter().map(|it| size_of::<Piece>() + of_piece(it)).sum()
    }

    /// Returns whether another text can come out of a string: it has a reference or a `\$`.
    pub fn changes(text: &str) -> bool {
        Self::parse(text).is_some_and(|it| it.references().next().is_some()) || text.contains("\\$")
    }

    /// Returns what a string comes to for every node; nothing if that depends on their facts.
    pub fn literal(text: &str) -> Option<Cow<'_, str>> {
        let Some(template) = Self::parse(text) else { return Some(Cow::Borrowed(text)) };
        let pieces = template.pieces.into_iter().map(|piece| match piece {
            Piece::Text(text) => Some(text),
            Piece::Reference(_) => None,
        });
        pieces.collect::<Option<String>>().map(Cow::Owned)
    }

    /// Returns the parts of a string that look like references and are not legal, in order. They stay as
    /// they are.
    pub fn illegal_forms(text: &str) -> Vec<IllegalForm> {
        let mut found = Vec::new();
        if text.contains('$') {
            Self::read(text, &mut |form| found.push(form));
        }
        found
    }

    fn read(text: &str, illegal: &mut impl FnMut(IllegalForm)) -> Self {
        let mut template = Self::default();
        let mut literal = String::new();
        let mut references = 0;
        // Looked for once: most of many `${` may have no end.
        let last_brace = text.rfind('}');
        // Where the text begins that is not in `literal` yet.
        let mut start = 0;
        while let Some(found) = text.get(start..).and_then(|rest| rest.find('$')) {
            let dollar = start + found;
            let before = text.get(start..dollar).unwrap_or_default();
            if let Some(before) = before.strip_suffix('\\') {
                literal.push_str(before);
                literal.push('$');
                start = dollar + 1;
                continue;
            }
            literal.push_str(before);
            let rest = text.get(dollar..).unwrap_or_default();
            let form = match form::read(rest) {
                Ok(_) if references == REFERENCES => {
                    Err((IllegalReason::TooMany, Extent::Bytes(rest.len())))
                }
                form => form,
            };
            start = match form {
                Ok((reference, length)) => {
                    template.push_text(&mut literal);
                    template.pieces.push(Piece::Reference(reference));
                    references += 1;
                    dollar + length
                }
                Err((reason, extent)) => {
                    let is_closed = last_brace.is_some_and(|it| dollar < it);
                    let (reason, length) = match extent {
                        Extent::Bytes(length) => (reason, length),
                        Extent::Braces if is_closed => {
                            (reason, rest.find('}').map_or(2, |it| it + 1))
                        }
                        Extent::Braces => (IllegalReason::Unclosed, 2),
                    };
                    let bytes = Range { start: dollar, end: dollar + length };
                    literal.push_str(text.get(bytes.clone()).unwrap_or_default());
                    illegal(IllegalForm { reason, bytes });
                    dollar + length
                }
            };
        }
        literal.push_str(text.get(start..).unwrap_or_default());
        template.push_text(&mut literal);
        template
    }

    fn push_text(&mut self, literal: &mut String) {
        if !literal.is_empty() {
            self.pieces.push(Piece::Text(std::mem::take(literal)));
        }
    }

    /// Returns the references, in order.
    pub fn references(&self) -> impl Iterator<Item = &FactReference> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Reference(reference) => Some(reference),
        })
    }
}
