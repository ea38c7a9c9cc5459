//! What tells large things apart without keeping them.

use std::io;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// A digest of the JSON text of something: equal for equal texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub(super) struct TextDigest([u8; 32]);

impl TextDigest {
    /// Returns the digest of what is written; the text itself is never in memory.
    pub(super) fn of(written: &impl Serialize) -> Self {
        let mut text = DigestedText(Sha256::new());
        // Values and names are always written, and a digest takes all.
        serde_json::to_writer(&mut text, written).ok();
        Self(text.0.finalize().into())
    }
}

struct DigestedText(Sha256);

impl io::Write for DigestedText {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.update(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
