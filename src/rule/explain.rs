//! Explaining rules: every term evaluated, with the value it saw.

use serde_json::{Map, Value, json};

use super::array_form::path_to_value;
use super::error::EvaluationError;
use super::evaluate::{holds, join};
use super::lookup::{actual, lookup};
use crate::model::{Condition, Node, Path, Test};

/// A condition with its outcome, and those of all its terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained<'r> {
    /// Whether it holds.
    pub outcome: Result<bool, EvaluationError>,
    /// What it consists of.
    pub form: ExplainedForm<'r>,
}

/// What an explained condition consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum ExplainedForm<'r> {
    /// All terms hold.
    And(Vec<Explained<'r>>),
    /// A term holds.
    Or(Vec<Explained<'r>>),
    /// The term does not hold.
    Not(Box<Explained<'r>>),
    /// A comparison, and the value it saw; null if nothing is there.
    Test(&'r Test, Value),
}

/// Evaluates every term of a condition for a node.
pub fn explain<'r>(condition: &'r Condition, node: &Node) -> Explained<'r> {
    let all = |terms: &'r [Condition]| -> Vec<_> {
        terms.iter().map(|term| explain(term, node)).collect()
    };
    let outcomes = |terms: &[Explained<'r>], decisive| {
        join(terms.iter().map(|term| term.outcome.clone()), decisive)
    };
    match condition {
        Condition::And(terms) => {
            let terms = all(terms);
            Explained { outcome: outcomes(&terms, false), form: ExplainedForm::And(terms) }
        }
        Condition::Or(terms) => {
            let terms = all(terms);
            Explained { outcome: outcomes(&terms, true), form: ExplainedForm::Or(terms) }
        }
        Condition::Not(inner) => {
            let inner = explain(inner, node);
            let outcome = inner.outcome.clone().map(|holds| !holds);
            Explained { outcome, form: ExplainedForm::Not(Box::new(inner)) }
        }
        Condition::Test(test) => Explained {
            outcome: actual(&test.path, node).and_then(|seen| holds(&test.comparison, seen)),
            form: ExplainedForm::Test(
                test,
                lookup(&test.path, node).map_or(Value::Null, std::borrow::Cow::into_owned),
            ),
        },
    }
}

/// Counts about how many bytes of facts and trusted data an explanation of a condition copies, down from what is left.
///
/// Returns none where that is not enough: every comparison shows what it saw, and a fact may be large.
pub fn count_explained(condition: &Condition, node: &Node, left: usize) -> Option<usize> {
    match condition {
        Condition::And(terms) | Condition::Or(terms) => {
            terms.iter().try_fold(left, |left, term| count_explained(term, node, left))
        }
        Condition::Not(inner) => count_explained(inner, node, left),
        Condition::Test(test) => match &test.path {
            // A name is short, and a group may have thousands of pinned nodes.
            Path::Name | Path::Bare(_) => Some(left),
            path @ Path::Segments(_) => {
                lookup(path, node).map_or(Some(left), |seen| count_value(&seen, left))
            }
        },
    }
}

/// The memory of a value without its text, in bytes, with the key of a field.
const VALUE: usize = 72;

fn count_value(value: &Value, left: usize) -> Option<usize> {
    let left = left.checked_sub(VALUE)?;
    match value {
        Value::Null | Value::Bool(_) => Some(left),
        Value::Number(number) => left.checked_sub(number.as_str().len()),
        Value::String(text) => left.checked_sub(text.len()),
        Value::Array(elements) => elements.iter().try_fold(left, |left, it| count_value(it, left)),
        Value::Object(fields) => fields
            .iter()
            .try_fold(left, |left, (key, it)| count_value(it, left.checked_sub(key.len())?)),
    }
}

impl Explained<'_> {
    /// Writes the explanation as the classifier API does: `{"value": …, "form": […]}`.
    ///
    /// A condition whose outcome is not known has a null `value` and says why in `error`.
    pub fn to_value(&self) -> Value {
        let list = |operator: &str, terms: &[Self]| -> Value {
            std::iter::once(operator.into()).chain(terms.iter().map(Self::to_value)).collect()
        };
        let form = match &self.form {
            ExplainedForm::And(terms) => list("and", terms),
            ExplainedForm::Or(terms) => list("or", terms),
            ExplainedForm::Not(inner) => json!(["not", inner.to_value()]),
            ExplainedForm::Test(test, value) => json!([
                test.comparison.operator(),
                {"path": path_to_value(&test.path), "value": value},
                test.comparison.operand(),
            ]),
        };
        let mut explained = Map::new();
        match &self.outcome {
            Ok(holds) => explained.insert("value".to_owned(), (*holds).into()),
            Err(error) => {
                explained.insert("value".to_owned(), Value::Null);
                explained.insert("error".to_owned(), error.to_string().into())
            }
        };
        explained.insert("form".to_owned(), form);
        Value::Object(explained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule;

    #[test]
    fn what_every_comparison_sees_counts_but_the_name() {
        let rule = json!([
            "or",
            ["=", "name", "n"],
            ["and", ["not", ["~", ["fact", "x"], "a"]], ["=", ["fact", "o", "k"], "a"]],
            ["=", ["fact", "none"], "a"],
            ["=", ["fact", "o"], "a"]
        ]);
        let condition = rule::read(&rule).unwrap();
        let fact = json!({"x": "12345", "o": {"k": [1, true]}}).as_object().unwrap().clone();
        let node = Node { fact, ..Node::named("n") };
        let list = 3 * VALUE + 1;
        let all = (VALUE + 5) + list + (VALUE + 1 + list);
        assert_eq!(count_explained(&condition, &node, all + 7), Some(7));
        assert_eq!(count_explained(&condition, &node, all - 1), None);
    }

    #[test]
    fn every_term_is_shown_with_the_value_it_saw() {
        let rule = json!([
            "or",
            ["=", "name", "n"],
            ["and", ["not", [">", ["fact", "x"], "5"]], ["~", ["fact", "o"], "a"]]
        ]);
        let condition = rule::read(&rule).unwrap();
        let fact = json!({"x": 7, "o": {"k": 1}}).as_object().unwrap().clone();
        let node = Node { fact, ..Node::named("n") };
        assert_eq!(
            explain(&condition, &node).to_value(),
            json!({"value": true, "form": ["or",
                {"value": true, "form": ["=", {"path": "name", "value": "n"}, "n"]},
                {"value": false, "form": ["and",
                    {"value": false, "form": ["not",
                        {"value": true, "form": [">", {"path": ["fact", "x"], "value": 7}, "5"]}]},
                    {"value": false, "form": ["~", {"path": ["fact", "o"], "value": {"k": 1}}, "a"]}]}]})
        );
    }
}
