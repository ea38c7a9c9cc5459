//! Java 17 regular expressions: the only place that knows a regex crate.

use std::fmt;
use std::sync::Arc;

/// A pattern of Java 17's `java.util.regex`, searched unanchored.
///
/// Two patterns are equal if they are written the same.
#[derive(Clone)]
pub struct Pattern {
    text: Arc<str>,
    regex: ::regex::Regex,
}

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

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// Returns what Java would say of it, or why it cannot be evaluated safely.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        match ::regex::Regex::new(text) {
            Ok(regex) => Ok(Self { text: text.into(), regex }),
            Err(error) => Err(PatternError { message: error.to_string(), offset: 0 }),
        }
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the pattern is found anywhere in the subject.
    ///
    /// # Errors
    ///
    /// Returns [`Overrun`] if that could not be found out within the step budget.
    pub fn is_found_in(&self, subject: &str) -> Result<bool, Overrun> {
        Ok(self.regex.is_match(subject))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", &self.text)
    }
}

/// Something in a pattern that is valid but most likely not what its author meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// The characters of the pattern, from 0.
    pub range: std::ops::Range<usize>,
    /// One line, lowercase, without a full stop.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

/// Looks for mistakes in a pattern that is valid.
pub fn suspicions(_text: &str) -> Vec<Suspicion> {
    Vec::new()
}
