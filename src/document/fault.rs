//! What can be wrong with a file.

use super::Span;

/// A fault in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What sort of fault.
    pub kind: FaultKind,
    /// One line, lowercase, without a full stop.
    pub message: String,
    /// Where.
    pub span: Span,
    /// What to do about it.
    pub help: Option<String>,
    /// Other places that have to do with it, and what.
    pub related: Vec<(Span, &'static str)>,
    /// Of a key that is set twice, the second value, if it is a scalar: it is not read.
    pub second: Option<Box<str>>,
}

impl Fault {
    pub(super) fn new(kind: FaultKind, span: Span, message: impl Into<String>) -> Self {
        let message = bounded(message.into());
        Self { kind, message, span, help: None, related: Vec::new(), second: None }
    }

    /// What is not YAML.
    pub(super) fn malformed(span: Span, message: impl Into<String>) -> Self {
        Self::new(FaultKind::Malformed, span, message)
    }

    /// What is YAML, but not allowed here.
    pub(super) fn refused(span: Span, message: impl Into<String>) -> Self {
        Self::new(FaultKind::Refused, span, message)
    }

    pub(super) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(bounded(help.into()));
        self
    }
}

/// The sorts of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The file is not YAML.
    Malformed,
    /// The file is YAML but uses a part of it that is refused: tags, merge keys, keys that are
    /// not strings.
    Refused,
    /// A key stands twice in one mapping.
    DuplicateKey,
    /// YAML readers read a plain scalar differently.
    AmbiguousScalar,
    /// The file is larger than the limit.
    TooLarge,
}

/// The most characters of a message; texts of a repository stand in messages, and may be long.
const LONGEST: usize = 1_000;

/// Cuts a message that is too long to be shown, and marks the place.
pub fn bounded(mut text: String) -> String {
    if text.len() > LONGEST
        && let Some((end, _)) = text.char_indices().nth(LONGEST)
    {
        text.truncate(end);
        text.push('…');
        text.shrink_to_fit();
    }
    text
}
