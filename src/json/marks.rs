//! Which bytes of a text are of some kind, for many at once: a bit for each, the first in the lowest.

use wide::u8x16;

/// How many bytes a block has.
const BLOCK: usize = 64;

/// The bytes of a block that do not stand for themselves in a string.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpecialBytes {
    /// Where the block begins.
    start: usize,
    /// A bit for each byte, the first in the lowest.
    marks: u64,
}

impl SpecialBytes {
    /// Returns those of the first block.
    pub(super) fn first(bytes: &[u8]) -> Self {
        Self { start: 0, marks: marks(bytes, 0) }
    }

    /// Returns the place of the first special byte from a place in this block or behind it, or one behind the text.
    #[inline(always)]
    pub(super) fn find(&mut self, bytes: &[u8], at: usize) -> usize {
        debug_assert!(at >= self.start, "a cursor goes forward");
        if at >= self.start + BLOCK {
            // Not at once: the processor foresees how many steps it takes before it knows the place, and goes on.
            loop {
                self.start += BLOCK;
                if at < self.start + BLOCK {
                    break;
                }
            }
            self.marks = marks(bytes, self.start);
        }
        let mut behind = self.marks >> (at % BLOCK);
        let mut from = at;
        while behind == 0 {
            self.start += BLOCK;
            self.marks = marks(bytes, self.start);
            behind = self.marks;
            from = self.start;
        }
        from + behind.trailing_zeros() as usize
    }
}

/// Marks the special bytes of a block. What is behind the text counts as special.
#[inline(always)]
fn marks(bytes: &[u8], start: usize) -> u64 {
    match bytes.get(start..).and_then(<[u8]>::first_chunk) {
        Some(chunk) => marks_of(chunk),
        None => last_marks(bytes, start),
    }
}

#[cold]
fn last_marks(bytes: &[u8], start: usize) -> u64 {
    let mut chunk = [0; BLOCK];
    let rest = bytes.get(start..).unwrap_or_default();
    if let Some(part) = chunk.get_mut(..rest.len()) {
        part.copy_from_slice(rest);
    }
    marks_of(&chunk)
}

#[inline(always)]
fn marks_of(chunk: &[u8; BLOCK]) -> u64 {
    let (&[first, second, third, last], []) = chunk.as_chunks() else { return u64::MAX };
    let low = special(second) << 16 | special(first);
    let high = special(last) << 16 | special(third);
    u64::from(high) << 32 | u64::from(low)
}

/// Marks the bytes that do not stand for themselves in a string: quotes, backslashes, control
/// characters.
#[inline(always)]
fn special(chunk: [u8; 16]) -> u32 {
    let bytes = u8x16::new(chunk);
    let is_control = bytes.min(u8x16::splat(0x1f)).simd_eq(bytes);
    let is_quote = bytes.simd_eq(u8x16::splat(b'"'));
    let is_backslash = bytes.simd_eq(u8x16::splat(b'\\'));
    (is_control | is_quote | is_backslash).to_bitmask()
}

/// Marks all but blanks.
#[inline(always)]
pub(super) fn others_than_blanks(chunk: [u8; 16]) -> u32 {
    let bytes = u8x16::new(chunk);
    let are_apart = bytes.simd_eq(u8x16::splat(b' ')) | bytes.simd_eq(u8x16::splat(b'\t'));
    let are_ends = bytes.simd_eq(u8x16::splat(b'\n')) | bytes.simd_eq(u8x16::splat(b'\r'));
    others(are_apart | are_ends)
}

/// Marks all but digits.
#[inline(always)]
pub(super) fn others_than_digits(chunk: [u8; 16]) -> u32 {
    let values = u8x16::new(chunk) - u8x16::splat(b'0');
    others(values.min(u8x16::splat(9)).simd_eq(values))
}

/// Marks the bytes that are not of a kind.
#[inline(always)]
fn others(are_of_kind: u8x16) -> u32 {
    !are_of_kind.to_bitmask() & 0xffff
}
