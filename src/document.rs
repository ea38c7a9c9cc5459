//! Bytes to values with places: the only YAML reader of the program.

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
