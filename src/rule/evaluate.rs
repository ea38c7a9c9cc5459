//! Evaluating rules.
//!
//! Evaluation is three-valued: a condition holds, does not hold, or could not be
//! found out because a pattern used up its step budget or a value was not stored. An `and` with a false
//! term is false and an `or` with a true term is true, whatever the others are;
//! so the answer does not depend on the order in which terms are evaluated, and
//! an index may leave out what cannot hold.

use std::cmp::Ordering;

use serde_json::Value;

use super::error::EvaluationError;
use super::lookup::{Actual, actual};
use crate::java_regex::{Overrun, Pattern};
use crate::model::{Comparison, Condition, Decimal, Node, Order, is_written_as};

/// Returns how many steps searches for patterns have taken on this thread, which rules are evaluated on, since it began.
pub fn search_steps() -> u64 {
    crate::java_regex::steps_of_thread()
}

/// Returns whether a condition holds for a node.
///
/// # Errors
///
/// Returns [`EvaluationError`] if the answer hangs on a pattern that used up its step budget, or on a value
/// that was not stored.
pub fn evaluate(condition: &Condition, node: &Node) -> Result<bool, EvaluationError> {
    match condition {
        Condition::And(terms) => join(terms.iter().map(|term| evaluate(term, node)), false),
        Condition::Or(terms) => join(terms.iter().map(|term| evaluate(term, node)), true),
        Condition::Not(inner) => evaluate(inner, node).map(|holds| !holds),
        Condition::Test(test) => holds(&test.comparison, actual(&test.path, node)?),
    }
}

/// Joins the outcomes of terms, of which one that is `decisive` decides: true for `or`, false
/// for `and`.
pub(super) fn join(
    terms: impl IntoIterator<Item = Result<bool, EvaluationError>>,
    decisive: bool,
) -> Result<bool, EvaluationError> {
    let mut joined = Ok(!decisive);
    for term in terms {
        match term {
            Ok(holds) if holds == decisive => return Ok(decisive),
            Ok(_) => {}
            Err(error) if joined.is_ok() => joined = Err(error),
            Err(_) => {}
        }
    }
    joined
}

/// Returns whether a comparison holds for a value.
///
/// # Errors
///
/// Returns [`EvaluationError`] if a pattern used up its step budget.
pub fn holds(comparison: &Comparison, actual: Actual<'_>) -> Result<bool, EvaluationError> {
    Ok(match (comparison, actual) {
        (Comparison::Equals(wanted), Actual::Text(text)) => text == wanted.as_ref(),
        (Comparison::Equals(wanted), Actual::Scalar(text)) => is_written_as(text, wanted),
        (Comparison::Finds(pattern), Actual::Text(text)) => {
            return found(pattern, pattern.is_found_in(text));
        }
        (Comparison::Contains(wanted), Actual::List(elements)) => {
            elements.iter().any(|element| holds_text(element, wanted))
        }
        (comparison, Actual::Text(text) | Actual::Scalar(text)) => {
            comparison.number().is_some_and(|(order, wanted)| {
                Decimal::parse(text).is_some_and(|number| stands(&number, order, wanted))
            })
        }
        _ => false,
    })
}

fn holds_text(element: &Value, wanted: &str) -> bool {
    match Actual::of(element) {
        Actual::Text(text) => text == wanted,
        Actual::Scalar(text) => is_written_as(text, wanted),
        Actual::Missing | Actual::List(_) | Actual::Object => false,
    }
}

/// Returns the outcome of a search; one that ran out of steps is not known.
///
/// # Errors
///
/// Returns [`EvaluationError`] if the pattern used up its step budget.
pub(crate) fn found(
    pattern: &Pattern,
    outcome: Result<bool, Overrun>,
) -> Result<bool, EvaluationError> {
    outcome.map_err(|Overrun| EvaluationError::Steps { pattern: pattern.as_str().into() })
}

/// Returns whether a number stands in an order to the one that a rule names.
pub(crate) fn stands(number: &Decimal, order: Order, wanted: &Decimal) -> bool {
    let actual = number.cmp(wanted);
    match order {
        Order::Greater => actual == Ordering::Greater,
        Order::AtLeast => actual != Ordering::Less,
        Order::Less => actual == Ordering::Less,
        Order::AtMost => actual != Ordering::Greater,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule;
    use crate::table::each_row;
    use serde_json::json;

    fn read(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn check(operator: &str, actual: &Value, operand: &str) -> bool {
        let rule = rule::read(&json!([operator, ["fact", "x"], operand])).unwrap();
        let fact = json!({ "x": actual }).as_object().unwrap().clone();
        evaluate(&rule, &Node { fact, ..Node::named("n") }).unwrap()
    }

    #[test]
    fn operators_see_the_types_that_they_are_made_for() {
        let rows = [
            ("=", json!("a"), "a", true),
            ("=", json!("A"), "a", false),
            ("=", json!(5), "5", true),
            ("=", json!(5.0), "5.0", true),
            ("=", json!(5.0), "5", false),
            ("=", json!(true), "true", true),
            ("=", json!(false), "false", true),
            ("=", json!(null), "null", false),
            ("=", json!(["a"]), "a", false),
            ("=", json!({}), "{}", false),
            ("~", json!("web01"), "b0", true),
            ("~", json!(5), "5", false),
            ("~", json!(true), ".*", false),
            ("~", json!(""), "", true),
            ("=", read("1e3"), "1e3", true),
            ("=", read("1e3"), "1E3", true),
            ("=", read("1E+3"), "1e3", true),
            ("=", read("1.5e-7"), "1.5E-7", true),
            ("=", read("1e3"), "1000", false),
            ("=", json!("1e+3"), "1e3", false),
            ("<:", read("[1e3]"), "1e3", true),
            ("<:", json!(["1e+3"]), "1e3", false),
            (">", json!("9007199254740993"), "9007199254740992", true),
            (">", json!(10), "9", true),
            (">", json!("10K"), "9", false),
            (">", json!(true), "0", false),
            (">=", json!(" 5 "), "5.0", true),
            ("<", json!(0.1), "0.1", false),
            ("<=", json!([1]), "5", false),
            ("<", json!(1), "x", false),
            ("<:", json!(["a", "b"]), "b", true),
            ("<:", json!([1, true]), "1", true),
            ("<:", json!([1, true]), "true", true),
            ("<:", json!([["a"]]), "a", false),
            ("<:", json!([null]), "null", false),
            ("<:", json!("ab"), "a", false),
            ("<:", json!({"a": 1}), "a", false),
        ];
        each_row(rows, |(operator, actual, operand, expected)| {
            assert_eq!(
                check(operator, &actual, operand),
                expected,
                "{actual} {operator} {operand:?}"
            );
        });
    }

    #[test]
    fn not_of_a_missing_value_holds() {
        let rule = rule::read(&json!(["not", ["=", ["fact", "absent"], "x"]])).unwrap();
        assert_eq!(evaluate(&rule, &Node::named("n")), Ok(true));
    }

    #[test]
    fn a_deciding_term_outweighs_one_that_is_not_known() {
        let unknown = || Err(EvaluationError::Steps { pattern: "p".into() });
        for (terms, decisive, expected) in [
            (vec![unknown(), Ok(true)], true, Ok(true)),
            (vec![Ok(true), unknown()], true, Ok(true)),
            (vec![unknown(), Ok(false)], true, unknown()),
            (vec![unknown(), Ok(false)], false, Ok(false)),
            (vec![Ok(true), unknown()], false, unknown()),
        ] {
            assert_eq!(join(terms.clone(), decisive), expected, "{terms:?} {decisive}");
        }
    }
}
