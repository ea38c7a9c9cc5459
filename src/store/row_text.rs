//! The text of a check-in that waits to be written.

use std::cell::Cell;
use std::ops::Deref;

/// The largest text whose memory is kept, in bytes.
const LARGEST: usize = 64 << 10;

thread_local! {
    /// The memory of a text that this thread dropped.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The text of a check-in, in JSON.
///
/// While many nodes check in, the next check-in of a node takes the place of one that still waits. The thread that drops the
/// one before uses its memory again for the next: an allocator takes longer for so much than the copy does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowText(Vec<u8>);

impl RowText {
    /// Puts a text together from its parts.
    pub(super) fn of(parts: &[&str]) -> Self {
        let length = parts.iter().map(|it| it.len()).sum();
        let mut text = Self::with_room(length);
        for part in parts {
            text.extend_from_slice(part.as_bytes());
        }
        Self(text)
    }

    /// Returns an empty text with room for so many bytes. The memory of the spare one is used if it is not much too large:
    /// what waits is counted by the length of its text.
    fn with_room(bytes: usize) -> Vec<u8> {
        let mut spare = SPARE.take();
        if spare.capacity() < bytes || spare.capacity() / 2 > bytes {
            return Vec::with_capacity(bytes);
        }
        spare.clear();
        spare
    }
}

impl From<Vec<u8>> for RowText {
    fn from(text: Vec<u8>) -> Self {
        Self(text)
    }
}

impl Deref for RowText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for RowText {
    fn drop(&mut self) {
        if self.0.capacity() <= LARGEST {
            // A thread that ends has no spare one any more.
            SPARE.try_with(|it| it.set(std::mem::take(&mut self.0))).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_where_it_fits() {
        let first = RowText::of(&["{", &"x".repeat(10_000), "}"]);
        let place = first.as_ptr();
        drop(first);
        let shorter = RowText::of(&["[", &"x".repeat(6_000), "]"]);
        assert_eq!((shorter.as_ptr(), shorter.len()), (place, 6_002));
        assert_eq!(&shorter[..2], b"[x");
        drop(shorter);
        // Much too large, and then too small, and then larger than what is kept.
        for length in [100, 20_000, LARGEST + 1] {
            let text = RowText::of(&[&"y".repeat(length)]);
            assert_eq!((text.len(), text.0.capacity()), (length, length));
        }
        assert!(SPARE.take().capacity() <= LARGEST);
    }
}
