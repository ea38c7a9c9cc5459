//! What a pattern says, with all flags resolved.

use super::set::CodeSet;

/// A pattern or a part of it.
#[derive(Clone, Debug)]
pub(super) enum Ast {
    /// Nothing.
    Empty,
    /// One character of a set.
    Set(CodeSet),
    /// One part after the other.
    Sequence(Vec<Self>),
    /// One of several parts, the first that leads to a match.
    Choice(Vec<Self>),
    /// A part several times.
    Repeat(Box<Repeat>),
    /// A part whose text is kept under a number.
    Capture(u32, Box<Self>),
    /// A part that is not tried otherwise once it has matched.
    Atomic(Box<Self>),
    /// A part that must match here, or must not.
    Look(Box<Look>),
    /// The text of a capture.
    Reference(Reference),
    /// A place.
    Assert(Assertion),
    /// `\R`
    LineBreak,
    /// `\X`
    Grapheme,
}

#[derive(Clone, Debug)]
pub(super) struct Repeat {
    pub(super) body: Ast,
    pub(super) least: u32,
    /// `None` is any number.
    pub(super) most: Option<u32>,
    pub(super) mode: RepeatMode,
    pub(super) looping: Looping,
}

/// How Java runs a repetition. It decides how long a look-behind can be, and what becomes of the
/// capture of an iteration that matches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looping {
    /// `?` behind an atom, or possessive behind a group.
    Optional,
    /// `?` behind a group: a choice between the group and nothing.
    OptionalGroup,
    /// A greedy `*`, `+` or `{n,}` behind one character.
    Characters,
    /// Any other repetition of an atom, and each possessive one.
    Atom,
    /// A group that can match in one way only: an iteration that matches nothing is undone.
    FixedGroup,
    /// Any other group: an iteration that matches nothing is the last.
    Group,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepeatMode {
    Greedy,
    Lazy,
    Possessive,
}

#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) body: Ast,
    pub(super) direction: Direction,
    pub(super) negative: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Ahead,
    /// Behind, by so many characters at the least and the most; `most` may have overflown, as it
    /// does in Java.
    Behind {
        least: i32,
        most: i32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) group: u32,
    pub(super) case: Case,
}

/// Which letters are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Exact,
    Ascii,
    Unicode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assertion {
    /// `\A`, `\G`, and `^` without `(?m)`
    Start,
    /// `\z`
    End,
    /// `\Z`, and `$` without `(?m)`: before a final line terminator too
    BeforeFinal(Lines),
    /// `^` with `(?m)`
    LineStart(Lines),
    /// `$` with `(?m)`
    LineEnd(Lines),
    /// `\b` and `\B`
    WordBoundary { negative: bool, unicode: bool },
    /// `\b{g}`
    GraphemeBoundary,
}

/// What ends a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// `\n`, `\r\n`, `\r`, U+0085, U+2028, U+2029
    All,
    /// `\n` alone: `(?d)`
    Unix,
}

impl Ast {
    /// Returns whether the part can match nothing.
    pub(super) fn is_nullable(&self) -> bool {
        match self {
            Self::Empty | Self::Look(_) | Self::Assert(_) | Self::Reference(_) => true,
            Self::Set(_) | Self::LineBreak | Self::Grapheme => false,
            Self::Sequence(parts) => parts.iter().all(Self::is_nullable),
            Self::Choice(parts) => parts.iter().any(Self::is_nullable),
            Self::Repeat(repeat) => repeat.least == 0 || repeat.body.is_nullable(),
            Self::Capture(_, body) | Self::Atomic(body) => body.is_nullable(),
        }
    }

    /// Calls `visit` for every part.
    pub(super) fn walk(&self, visit: &mut dyn FnMut(&Self)) {
        visit(self);
        match self {
            Self::Sequence(parts) | Self::Choice(parts) => {
                for part in parts {
                    part.walk(visit);
                }
            }
            Self::Repeat(repeat) => repeat.body.walk(visit),
            Self::Capture(_, body) | Self::Atomic(body) => body.walk(visit),
            Self::Look(look) => look.body.walk(visit),
            _ => {}
        }
    }
}
