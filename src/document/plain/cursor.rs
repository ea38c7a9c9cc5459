//! Where the reader is in a text: the byte, its line and its column.

use memchr::memchr;

use crate::document::{Position, Span};

/// A place in a text that only moves on.
pub(super) struct LineCursor<'t> {
    pub(super) text: &'t str,
    /// The byte that is read next.
    pub(super) at: usize,
    /// The number of its line, from 1.
    line: u32,
    line_start: usize,
    /// Whether all characters are single bytes, so that columns need not be counted.
    is_ascii: bool,
    /// A byte of the line up to which the characters are counted, and how many they are.
    counted: (usize, usize),
    /// The bytes before the text, those of a byte-order mark.
    skipped_bytes: u32,
    /// Whether a comment has a line of its own.
    pub(super) has_comment_lines: bool,
}

fn number(it: usize) -> u32 {
    u32::try_from(it).unwrap_or(u32::MAX)
}

impl<'t> LineCursor<'t> {
    pub(super) fn new(text: &'t str, is_ascii: bool, skipped_bytes: usize) -> Self {
        Self {
            text,
            at: 0,
            line: 1,
            line_start: 0,
            is_ascii,
            counted: (0, 0),
            skipped_bytes: number(skipped_bytes),
            has_comment_lines: false,
        }
    }

    #[inline]
    pub(super) fn byte(&self) -> Option<u8> {
        self.byte_at(self.at)
    }

    #[inline]
    pub(super) fn byte_at(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Returns whether a byte is a blank, or the end of a line or of the text.
    #[inline]
    pub(super) fn ends_word(&self, at: usize) -> bool {
        matches!(self.byte_at(at), None | Some(b' ' | b'\n'))
    }

    /// Returns whether the next byte is the dash of a list's element.
    #[inline]
    pub(super) fn is_at_dash(&self) -> bool {
        self.byte() == Some(b'-') && self.ends_word(self.at + 1)
    }

    /// Returns how many bytes stand before the next one on its line.
    #[inline]
    pub(super) fn indent(&self) -> usize {
        self.at - self.line_start
    }

    /// Returns the place of a byte of this line.
    #[inline]
    pub(super) fn place(&mut self, at: usize) -> Position {
        let before = if self.is_ascii { at - self.line_start } else { self.characters_before(at) };
        Position {
            offset: number(at) + self.skipped_bytes,
            line: self.line,
            column: number(before) + 1,
        }
    }

    pub(super) fn span(&mut self, start: usize, end: usize) -> Span {
        Span { start: self.place(start), end: self.place(end) }
    }

    /// Counts the characters of the line before a byte. Places are asked for in order, so each character is counted
    /// once.
    fn characters_before(&mut self, at: usize) -> usize {
        let (from, before) = match self.counted {
            counted if counted.0 <= at => counted,
            _ => (self.line_start, 0),
        };
        let between = self.text.as_bytes().get(from..at).unwrap_or_default();
        let continued = |it: &&u8| **it & 0xc0 == 0x80;
        let characters = before + between.len() - between.iter().filter(continued).count();
        self.counted = (at, characters);
        characters
    }

    #[inline]
    pub(super) fn skip_blanks(&mut self) {
        while self.byte() == Some(b' ') {
            self.at += 1;
        }
    }

    /// Goes to where the line ends, or its comment begins; declines anything else before that.
    pub(super) fn finish_value(&mut self) -> Option<()> {
        let behind = self.at;
        self.skip_blanks();
        match self.byte() {
            None | Some(b'\n') => Some(()),
            Some(b'#') if self.at > behind => Some(()),
            Some(_) => None,
        }
    }

    /// Returns the comment that begins here, with its line's end.
    pub(super) fn comment(&self) -> &'t str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
        rest.get(..end).unwrap_or_default()
    }

    /// Skips blanks, comments and line breaks up to what comes next, or the end. A `#` that stands here is a comment.
    pub(super) fn skip_to_content(&mut self) {
        loop {
            self.skip_blanks();
            match self.byte() {
                Some(b'\n') => {
                    self.at += 1;
                    self.line += 1;
                    self.line_start = self.at;
                    self.counted = (self.at, 0);
                }
                Some(b'#') => {
                    let before = self.text.as_bytes().get(self.line_start..self.at);
                    self.has_comment_lines |=
                        before.is_some_and(|it| it.iter().all(|it| *it == b' '));
                    self.at += self.comment().len();
                }
                _ => return,
            }
        }
    }
}
