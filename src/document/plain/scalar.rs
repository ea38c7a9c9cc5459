//! Scalars of one line.
//!
//! Most bytes of a file are in them, so the few that mean something are found by a table.

use std::borrow::Cow;

use super::cursor::LineCursor;
use crate::byte_set::ByteSet;

/// A scalar of one line.
pub(super) struct LineScalar<'t> {
    pub(super) start: usize,
    /// The place behind it, with its quote.
    pub(super) end: usize,
    pub(super) text: Cow<'t, str>,
    pub(super) is_plain: bool,
}

/// What stands around a scalar.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    Block,
    /// Brackets or braces, whose characters end a plain scalar.
    Flow,
}

impl<'t> LineScalar<'t> {
    /// Reads the scalar that begins here, and goes behind it. Declines one that goes on in the next line, or whose text
    /// only the parser works out.
    pub(super) fn read(cursor: &mut LineCursor<'t>, around: Around) -> Option<Self> {
        let scalar = match cursor.byte()? {
            b'"' => double_quoted(cursor)?,
            b'\'' => single_quoted(cursor)?,
            first => plain(cursor, first, around)?,
        };
        cursor.at = scalar.end;
        Some(scalar)
    }
}

/// The bytes among which a scalar is searched for the next that means something.
static IN_BLOCK: ByteSet = ByteSet::of(b"\n:#");
static IN_FLOW: ByteSet = ByteSet::of(b"\n:#,[]{}-");
static IN_SINGLE_QUOTES: ByteSet = ByteSet::of(b"\n'");
static IN_DOUBLE_QUOTES: ByteSet = ByteSet::of(b"\n\"\\");

/// Returns the place of the next byte that means something, from a place on.
#[inline]
fn next_meant(bytes: &[u8], from: usize, meant: &ByteSet) -> Option<(usize, u8)> {
    let rest = bytes.get(from..)?;
    let length = rest.iter().position(|it| meant.has(*it))?;
    Some((from + length, *rest.get(length)?))
}

/// Returns whether a byte begins a plain scalar without any doubt.
fn begins_plain(first: u8, second: Option<u8>) -> bool {
    match first {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | 0x80.. => true,
        b'_' | b'/' | b'.' | b'+' | b'(' | b')' | b'$' | b'^' | b'~' | b'=' | b'<' | b';'
        | b'\\' => true,
        b'-' => second.is_some_and(|it| it.is_ascii_alphanumeric()),
        _ => false,
    }
}

fn plain<'t>(cursor: &LineCursor<'t>, first: u8, around: Around) -> Option<LineScalar<'t>> {
    let start = cursor.at;
    // Elsewhere it begins a text of several lines.
    let is_greater = first == b'>' && around == Around::Flow;
    if !is_greater && !begins_plain(first, cursor.byte_at(start + 1)) {
        return None;
    }
    let bytes = cursor.text.as_bytes();
    let before = |at: usize| at.checked_sub(1).and_then(|it| bytes.get(it));
    let meant = if around == Around::Flow { &IN_FLOW } else { &IN_BLOCK };
    let mut from = start + 1;
    let mut end = loop {
        let Some((at, byte)) = next_meant(bytes, from, meant) else { break bytes.len() };
        let ends = match byte {
            b':' => {
                let next = bytes.get(at + 1);
                let is_flow = matches!(next, Some(b',' | b'[' | b']' | b'{' | b'}'));
                matches!(next, None | Some(b' ' | b'\n')) || around == Around::Flow && is_flow
            }
            b'#' => before(at) == Some(&b' '),
            // Before a bracket it would be refused.
            b'-' if before(at) == Some(&b' ') => return None,
            b'-' => false,
            _ => true,
        };
        if ends {
            break at;
        }
        from = at + 1;
    };
    while before(end) == Some(&b' ') {
        end -= 1;
    }
    let text = Cow::Borrowed(cursor.text.get(start..end)?);
    Some(LineScalar { start, end, text, is_plain: true })
}

fn single_quoted<'t>(cursor: &LineCursor<'t>) -> Option<LineScalar<'t>> {
    let start = cursor.at;
    let bytes = cursor.text.as_bytes();
    let mut doubled = false;
    let mut from = start + 1;
    let end = loop {
        let (at, byte) = next_meant(bytes, from, &IN_SINGLE_QUOTES)?;
        if byte == b'\n' {
            return None;
        }
        if bytes.get(at + 1) != Some(&b'\'') {
            break at;
        }
        doubled = true;
        from = at + 2;
    };
    let inside = cursor.text.get(start + 1..end)?;
    let text = if doubled { inside.replace("''", "'").into() } else { Cow::Borrowed(inside) };
    Some(LineScalar { start, end: end + 1, text, is_plain: false })
}

fn double_quoted<'t>(cursor: &LineCursor<'t>) -> Option<LineScalar<'t>> {
    let start = cursor.at;
    let bytes = cursor.text.as_bytes();
    // What is before `from` is in the text already.
    let mut text = Cow::Borrowed("");
    let mut from = start + 1;
    let end = loop {
        let (at, byte) = next_meant(bytes, from, &IN_DOUBLE_QUOTES)?;
        let escaped = match byte {
            b'"' => break at,
            b'\\' => match bytes.get(at + 1)? {
                b'\\' => '\\',
                b'"' => '"',
                b'/' => '/',
                b'n' => '\n',
                b't' => '\t',
                _ => return None,
            },
            _ => return None,
        };
        let text = text.to_mut();
        text.push_str(cursor.text.get(from..at)?);
        text.push(escaped);
        from = at + 2;
    };
    let tail = cursor.text.get(from..end)?;
    if from == start + 1 {
        text = Cow::Borrowed(tail);
    } else {
        text.to_mut().push_str(tail);
    }
    Some(LineScalar { start, end: end + 1, text, is_plain: false })
}
