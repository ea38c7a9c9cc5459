//! Places in a file.

use std::cell::Cell;

use memchr::memchr_iter;

/// A point in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The number of bytes before it.
    pub offset: u32,
    /// The line, from 1.
    pub line: u32,
    /// The column in Unicode characters, from 1.
    pub column: u32,
}

impl Position {
    /// The first character of a file.
    pub const START: Self = Self { offset: 0, line: 1, column: 1 };
}

/// A stretch of a file, from `start` up to but not including `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Where it begins.
    pub start: Position,
    /// The first point after it.
    pub end: Position,
}

impl Span {
    /// The empty stretch at the beginning of a file, for findings on the file as a whole.
    pub const START: Self = Self { start: Position::START, end: Position::START };
}

/// How many bytes a line has at the least, mostly: room is made for so many lines.
const SHORT_LINE: usize = 16;

/// A line by the numbers of its characters.
#[derive(Clone, Copy, Default)]
struct LineBounds {
    /// Its number, from 0.
    number: usize,
    /// Its first character.
    start: u32,
    /// The first character of the next line.
    end: u32,
}

/// Turns the character numbers of the parser into places, each in logarithmic time.
pub(super) struct PositionIndex {
    /// The line that was asked for last; the next question is mostly about the same.
    latest: Cell<LineBounds>,
    /// The byte offset of every character and of the end; empty if all are single bytes.
    offsets: Vec<u32>,
    /// The character number at which each line starts.
    lines: Vec<u32>,
    characters: u32,
    /// The bytes before the text, those of a byte-order mark.
    skipped_bytes: u32,
    /// The characters that were left out of the text, by the number of the one that follows.
    shifts: Vec<(u32, u32)>,
}

impl PositionIndex {
    /// Prepares the places of a text that follows `skipped` in its file, of which the parser was
    /// given a copy without the characters in `shifts`.
    pub(super) fn new(text: &str, skipped: &str, shifts: Vec<(u32, u32)>) -> Self {
        let number = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
        let skipped_bytes = number(skipped.len());
        if text.is_ascii() {
            let mut lines = Vec::with_capacity(text.len() / SHORT_LINE + 1);
            lines.push(0);
            lines.extend(memchr_iter(b'\n', text.as_bytes()).map(|at| number(at + 1)));
            let (offsets, characters) = (Vec::new(), number(text.len()));
            return Self {
                latest: Cell::default(),
                offsets,
                lines,
                characters,
                skipped_bytes,
                shifts,
            };
        }
        let mut lines = vec![0];
        let mut characters = 0;
        for character in text.chars() {
            characters += 1;
            if character == '\n' {
                lines.push(characters);
            }
        }
        let offsets =
            text.char_indices().map(|(at, _)| number(at)).chain([number(text.len())]).collect();
        Self { latest: Cell::default(), offsets, lines, characters, skipped_bytes, shifts }
    }

    /// Returns how many bytes stand before the text in its file.
    pub(super) fn skipped_bytes(&self) -> u32 {
        self.skipped_bytes
    }

    /// Returns the place of a character of the parser's text.
    pub(super) fn position(&self, parsed: usize) -> Position {
        let parsed = u32::try_from(parsed).unwrap_or(u32::MAX);
        if self.shifts.is_empty() {
            return self.of_character(parsed);
        }
        let left_out = self.shifts.partition_point(|(at, _)| *at <= parsed);
        let left_out: u32 =
            left_out.checked_sub(1).and_then(|at| self.shifts.get(at)).map_or(0, |(_, it)| *it);
        self.of_character(parsed + left_out)
    }

    /// Returns the place of a byte of the file's text.
    pub(super) fn of_byte(&self, byte: usize) -> Position {
        let byte = u32::try_from(byte).unwrap_or(u32::MAX);
        if self.offsets.is_empty() {
            return self.of_character(byte);
        }
        let character = self.offsets.partition_point(|offset| *offset < byte);
        self.of_character(u32::try_from(character).unwrap_or(u32::MAX))
    }

    /// Returns the place of a character of the file's text.
    pub(super) fn of_character(&self, character: u32) -> Position {
        let character = character.min(self.characters);
        let LineBounds { number, start, .. } = self.line_of(character);
        let offset = self.offsets.get(character as usize).copied();
        Position {
            offset: offset.unwrap_or(character) + self.skipped_bytes,
            line: u32::try_from(number + 1).unwrap_or(u32::MAX),
            // A byte-order mark is not a character of the first line to any editor.
            column: character - start + 1,
        }
    }

    /// Returns the line of a character.
    fn line_of(&self, character: u32) -> LineBounds {
        let has = |line: &LineBounds| line.start <= character && character < line.end;
        let latest = self.latest.get();
        if has(&latest) {
            return latest;
        }
        let found = Some(self.line(latest.number + 1)).filter(has).unwrap_or_else(|| {
            self.line(self.lines.partition_point(|start| *start <= character).saturating_sub(1))
        });
        self.latest.set(found);
        found
    }

    fn line(&self, number: usize) -> LineBounds {
        let start = |number: usize| self.lines.get(number).copied();
        match start(number) {
            // The end of the text is on its last line.
            Some(first) => {
                LineBounds { number, start: first, end: start(number + 1).unwrap_or(u32::MAX) }
            }
            None => LineBounds::default(),
        }
    }
}
