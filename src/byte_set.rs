//! Sets of bytes, for texts of which each byte is asked about.

/// A set of bytes, with an entry for each that there is.
#[derive(Debug)]
pub struct ByteSet([bool; 256]);

impl ByteSet {
    /// Returns the set of these bytes.
    #[expect(clippy::indexing_slicing, reason = "a table has an entry for each byte")]
    pub const fn of(bytes: &[u8]) -> Self {
        let mut table = [false; 256];
        let mut rest = bytes;
        while let [first, behind @ ..] = rest {
            table[*first as usize] = true;
            rest = behind;
        }
        Self(table)
    }

    /// Returns whether a byte is in the set.
    #[inline]
    pub fn has(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte)) == Some(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_its_bytes_and_no_others() {
        static SET: ByteSet = ByteSet::of(b"\n:z\xff");
        for byte in 0..=u8::MAX {
            assert_eq!(SET.has(byte), [b'\n', b':', b'z', 0xff].contains(&byte), "{byte}");
        }
    }
}
