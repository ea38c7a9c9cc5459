//! Why a pattern cannot be used.

/// A text is not a pattern, or one that cannot be evaluated safely.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PatternError {
    /// The fault in Java's terms, lowercase, without a full stop.
    pub message: String,
    /// Where in the pattern, in Unicode characters from 0.
    pub offset: usize,
}

/// The evaluation of a pattern used up its budget of steps; the answer is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern used up its step budget")]
pub struct Overrun;
