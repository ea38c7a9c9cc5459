//! Code that cannot be read.

/// What keeps a file from being read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct CodeFault {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub reason: String,
}

impl CodeFault {
    /// Makes a fault at a byte of the code.
    pub(super) fn at(text: &str, byte: usize, reason: impl Into<String>) -> Self {
        let before = text.as_bytes().iter().take(byte);
        Self { line: before.filter(|it| **it == b'\n').count() + 1, reason: reason.into() }
    }
}
