//! The comparisons of both notations.

use super::fault::{RuleFault, RuleFaultKind};
use crate::java_regex::{Pattern, from_glob};
use crate::model::{Comparison, Decimal, NumberComparison, Order, shared_text};

/// Reads the operand of a comparison; the operator is one of [`OPERATORS`].
pub(super) fn comparison(operator: &str, operand: &str) -> Option<Result<Comparison, RuleFault>> {
    let order = match operator {
        "=" => return Some(Ok(Comparison::Equals(shared_text(operand)))),
        "<:" => return Some(Ok(Comparison::Contains(shared_text(operand)))),
        "~" => {
            return Some(Pattern::parse(operand).map(Comparison::Finds).map_err(|error| {
                RuleFault {
                    kind: RuleFaultKind::Pattern,
                    element: Vec::new(),
                    characters: Some(error.offset..error.offset + 1),
                    message: format!("`{}` is not a pattern: {}", shorten(operand), error.message),
                    help: from_glob(operand).map(|pattern| {
                        format!("a regular expression is expected, not a glob: write `{pattern}`")
                    }),
                }
            }));
        }
        ">" => Order::Greater,
        ">=" => Order::AtLeast,
        "<" => Order::Less,
        "<=" => Order::AtMost,
        _ => return None,
    };
    let number = Decimal::parse(operand);
    let comparison = NumberComparison { order, operand: operand.into(), number };
    Some(Ok(Comparison::Number(comparison.into())))
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
