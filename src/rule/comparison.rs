//! The comparisons of both notations.

use super::fault::{RuleFault, RuleFaultKind};
use crate::java_regex::{Pattern, PatternError, from_glob};
use crate::model::{Comparison, Decimal, NumberComparison, Order, shared_text};

/// What a comparison compares with, before its operand is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ComparisonOperator {
    Equals,
    Finds,
    Contains,
    Number(Order),
}

impl ComparisonOperator {
    /// Reads an operator as the array form has it; `None` for any other text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "=" => Self::Equals,
            "~" => Self::Finds,
            "<:" => Self::Contains,
            ">" => Self::Number(Order::Greater),
            ">=" => Self::Number(Order::AtLeast),
            "<" => Self::Number(Order::Less),
            "<=" => Self::Number(Order::AtMost),
            _ => return None,
        })
    }

    /// Reads the operand.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with a pattern, without the element that it stands in.
    pub(super) fn comparison(self, operand: &str) -> Result<Comparison, RuleFault> {
        Ok(match self {
            Self::Equals => Comparison::Equals(shared_text(operand)),
            Self::Contains => Comparison::Contains(shared_text(operand)),
            Self::Finds => {
                let fault_of = |error| fault_of_pattern(operand, &error);
                Comparison::Finds(Pattern::parse(operand).map_err(fault_of)?)
            }
            Self::Number(order) => {
                let number = Decimal::parse(operand);
                let comparison = NumberComparison { order, operand: operand.into(), number };
                Comparison::Number(comparison.into())
            }
        })
    }
}

fn fault_of_pattern(operand: &str, error: &PatternError) -> RuleFault {
    RuleFault {
        kind: RuleFaultKind::Pattern,
        element: Vec::new(),
        characters: Some(error.offset..error.offset + 1),
        message: format!("`{}` is not a pattern: {}", shorten(operand), error.message),
        help: from_glob(operand).map(|pattern| {
            format!("a regular expression is expected, not a glob: write `{pattern}`")
        }),
    }
}

/// The operators of comparisons.
pub(super) const OPERATORS: &str = "`=`, `~`, `>`, `>=`, `<`, `<=`, `<:`";

/// Cuts a text that is too long for a message.
pub(super) fn shorten(text: &str) -> String {
    const LIMIT: usize = 60;
    if text.chars().nth(LIMIT).is_none() {
        return text.to_owned();
    }
    text.chars().take(LIMIT - 1).chain(['…']).collect()
}
