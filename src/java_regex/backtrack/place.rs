//! What stands at a place of the subject.

use std::sync::LazyLock;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation as _};

use super::Backtracker;
use crate::java_regex::ast::{Assertion, Lines};
use crate::java_regex::parse::{unicode, word};
use crate::java_regex::set::CodeSet;

/// What `\b` takes for part of a word: letters and digits of any script, and `_`.
static WORD: LazyLock<CodeSet> =
    LazyLock::new(|| unicode(&["gc=L", "gc=Nd"]).unwrap_or_default().union(&CodeSet::of(0x5f)));

/// The same with flag `U`.
static WIDE_WORD: LazyLock<CodeSet> = LazyLock::new(|| word().unwrap_or_default());

/// Marks, which belong to the letter that they stand on.
static MARK: LazyLock<CodeSet> = LazyLock::new(|| unicode(&["gc=Mn"]).unwrap_or_default());

/// Letters and digits.
static BASE: LazyLock<CodeSet> = LazyLock::new(|| unicode(&["gc=L", "gc=Nd"]).unwrap_or_default());

/// Returns whether a character ends a line, as Java has it.
pub(in crate::java_regex) fn is_terminator(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

impl Backtracker<'_> {
    fn at(&self, place: usize) -> Option<char> {
        self.subject.get(place).copied()
    }

    fn before(&self, place: usize) -> Option<char> {
        place.checked_sub(1).and_then(|before| self.at(before))
    }

    /// Returns whether an assertion holds at a place.
    pub(super) fn holds(&self, assertion: Assertion, place: usize) -> bool {
        let end = self.subject.len();
        match assertion {
            Assertion::Start => place == 0,
            Assertion::End => place == end,
            Assertion::LineStart(lines) => self.line_starts(lines, place),
            Assertion::LineEnd(lines) => place == end || self.terminator_starts(lines, place),
            Assertion::BeforeFinal(lines) => {
                place == end
                    || (self.terminator_starts(lines, place)
                        && (place + 1 == end || (place + 2 == end && self.is_pair(lines, place))))
            }
            Assertion::WordBoundary { negative, unicode } => {
                let left = place > 0 && self.is_word(place - 1, unicode);
                let right = place < end && self.is_word(place, unicode);
                (left != right) != negative
            }
            Assertion::GraphemeBoundary => self.is_grapheme_boundary(place),
        }
    }

    /// Returns whether `\r\n` stands at a place.
    fn is_pair(&self, lines: Lines, place: usize) -> bool {
        lines == Lines::All && self.at(place) == Some('\r') && self.at(place + 1) == Some('\n')
    }

    /// Returns whether a line terminator starts at a place: not between `\r` and `\n`.
    fn terminator_starts(&self, lines: Lines, place: usize) -> bool {
        match (lines, self.at(place)) {
            (_, None) => false,
            (Lines::Unix, Some(character)) => character == '\n',
            (Lines::All, Some('\n')) => self.before(place) != Some('\r'),
            (Lines::All, Some(character)) => is_terminator(character),
        }
    }

    /// Returns whether a line starts at a place; none starts at the end.
    fn line_starts(&self, lines: Lines, place: usize) -> bool {
        if place == self.subject.len() {
            return false;
        }
        match (lines, self.before(place)) {
            (_, None) => true,
            (Lines::Unix, Some(character)) => character == '\n',
            (Lines::All, Some('\r')) => self.at(place) != Some('\n'),
            (Lines::All, Some(character)) => is_terminator(character),
        }
    }

    fn is_word(&self, place: usize, wide: bool) -> bool {
        let Some(code) = self.at(place).map(u32::from) else { return false };
        let set = if wide { &WIDE_WORD } else { &WORD };
        set.contains(code) || (MARK.contains(code) && self.has_base(place))
    }

    /// Returns whether the marks up to a place stand on a letter or digit.
    fn has_base(&self, place: usize) -> bool {
        let before = self.subject.get(..place).unwrap_or_default();
        let base = before.iter().rev().map(|it| u32::from(*it)).find(|it| !MARK.contains(*it));
        base.is_some_and(|it| BASE.contains(it))
    }

    fn is_grapheme_boundary(&self, place: usize) -> bool {
        if self.subject.is_empty() {
            return true;
        }
        let text: String = self.subject.iter().collect();
        let offset: usize =
            self.subject.iter().take(place).map(|character| character.len_utf8()).sum();
        let mut cursor = GraphemeCursor::new(offset, text.len(), true);
        cursor.is_boundary(&text, 0).unwrap_or(true)
    }

    /// Returns the place behind the grapheme cluster at a place.
    pub(super) fn grapheme_end(&self, place: usize) -> Option<usize> {
        let rest: String = self.subject.get(place..)?.iter().collect();
        let cluster = rest.graphemes(true).next()?;
        Some(place + cluster.chars().count())
    }
}
