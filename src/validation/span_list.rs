//! Spans in few bytes.
//!
//! An estate keeps where each of its values is written, and nearly never asks for it.

use crate::document::{Position, Span};

/// Spans of one file.
///
/// Each is written as its difference to the one before, so that one that is near it takes a few bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SpanList(Box<[u8]>);

impl SpanList {
    /// Returns the spans in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Span> {
        let mut rest = self.0.as_ref();
        let mut before = Position::START;
        std::iter::from_fn(move || {
            let start = read_position(&mut rest, before)?;
            let end = read_position(&mut rest, start)?;
            before = end;
            Some(Span { start, end })
        })
    }

    /// Returns the span before which so many others stand.
    pub(super) fn get(&self, number: usize) -> Option<Span> {
        self.iter().nth(number)
    }
}

impl FromIterator<Span> for SpanList {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        /// How many bytes a span takes, mostly.
        const USUAL: usize = 4;
        let spans = spans.into_iter();
        let mut bytes = Vec::with_capacity(USUAL * spans.size_hint().0);
        let mut before = Position::START;
        for Span { start, end } in spans {
            write_position(&mut bytes, before, start);
            write_position(&mut bytes, start, end);
            before = end;
        }
        Self(bytes.into())
    }
}

/// Writes a position as its difference to another one: one number if both are on a line and only ASCII is
/// between them.
fn write_position(bytes: &mut Vec<u8>, from: Position, to: Position) {
    let lines = difference(from.line, to.line);
    let columns = difference(from.column, to.column);
    let offsets = difference(from.offset, to.offset);
    if lines == 0 && columns == offsets {
        write_number(bytes, offsets << 1);
    } else {
        write_number(bytes, lines << 1 | 1);
        write_number(bytes, columns);
        write_number(bytes, offsets);
    }
}

fn read_position(bytes: &mut &[u8], from: Position) -> Option<Position> {
    let first = read_number(bytes)?;
    let (lines, columns, offsets) = match first & 1 {
        0 => (0, first >> 1, first >> 1),
        _ => (first >> 1, read_number(bytes)?, read_number(bytes)?),
    };
    Some(Position {
        offset: add(from.offset, offsets),
        line: add(from.line, lines),
        column: add(from.column, columns),
    })
}

/// Returns the difference of two numbers: small if they are close, whichever is greater.
fn difference(from: u32, to: u32) -> u64 {
    let difference = to.wrapping_sub(from).cast_signed();
    u64::from((difference << 1 ^ difference >> 31).cast_unsigned())
}

/// Returns the number that has this difference to another one.
fn add(from: u32, difference: u64) -> u32 {
    // A difference has 32 bits.
    let difference = u32::try_from(difference).unwrap_or_default();
    let sign = (difference & 1).wrapping_neg();
    from.wrapping_add(difference >> 1 ^ sign)
}

/// Writes a number seven bits a byte, the lowest first; all bytes but the last have the highest bit.
fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push((number & 0x7f) as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    let mut shift = 0;
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    fn random_position(random: &mut Rng) -> Position {
        let mut number = || match random.u8(..4) {
            0 => random.u32(..),
            1 => [0, 1, u32::MAX, u32::MAX / 2, 1 << 31][random.usize(..5)],
            _ => random.u32(..300),
        };
        Position { offset: number(), line: number(), column: number() }
    }

    #[test]
    fn spans_are_read_as_they_were_written() {
        let mut random = Rng::with_seed(3);
        for _ in 0..2000 {
            let mut spans: Vec<Span> = Vec::new();
            for _ in 0..random.usize(..9) {
                let start = random_position(&mut random);
                let mut end = random_position(&mut random);
                if random.bool() {
                    let length = random.u32(..200);
                    end = Position {
                        offset: start.offset.wrapping_add(length),
                        line: start.line,
                        column: start.column.wrapping_add(length),
                    };
                }
                spans.push(Span { start, end });
            }
            let list: SpanList = spans.iter().copied().collect();
            assert_eq!(list.iter().collect::<Vec<_>>(), spans);
            for number in 0..=spans.len() {
                assert_eq!(list.get(number), spans.get(number).copied());
            }
        }
    }

    #[test]
    fn a_span_near_the_one_before_takes_few_bytes() {
        let at = |offset, line, column| Position { offset, line, column };
        let key = Span { start: at(100, 7, 5), end: at(111, 7, 16) };
        let value = Span { start: at(113, 7, 18), end: at(120, 7, 25) };
        let next = Span { start: at(125, 8, 5), end: at(136, 8, 16) };
        let bytes = |spans: &[Span]| spans.iter().copied().collect::<SpanList>().0.len();
        let first = bytes(&[key]);
        assert_eq!(bytes(&[key, value]) - first, 2);
        assert_eq!(bytes(&[key, value, next]) - bytes(&[key, value]), 4);
    }
}
