//! What a rule is read from: JSON, or YAML with places.

use serde_json::Value;

/// A value of which a rule is read where it stands.
pub trait RuleSource: Sized {
    /// Returns what the value is to a rule.
    fn part(&self) -> RulePart<'_, Self>;
}

/// What a value is to a rule.
#[derive(Clone, Copy, Debug)]
pub enum RulePart<'v, S> {
    /// A string.
    Text(&'v str),
    /// A list.
    List(&'v [S]),
    /// Null, a boolean or a number.
    Scalar(&'v Value),
    /// A mapping, which no part of a rule is.
    Mapping,
}

impl<'v, S> RulePart<'v, S> {
    /// Returns the text of a string.
    pub(super) fn text(self) -> Option<&'v str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl RuleSource for Value {
    fn part(&self) -> RulePart<'_, Self> {
        match self {
            Self::String(text) => RulePart::Text(text),
            Self::Array(elements) => RulePart::List(elements),
            Self::Object(_) => RulePart::Mapping,
            scalar => RulePart::Scalar(scalar),
        }
    }
}
