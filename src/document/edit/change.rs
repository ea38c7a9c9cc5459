//! A stretch of text that is replaced.

/// A stretch of the text, and what takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextChange {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) with: String,
}
