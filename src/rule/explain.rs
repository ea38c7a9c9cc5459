//! Explaining rules: every term evaluated, with the value it saw.

use serde_json::{Map, Value, json};

use super::array_form::path_to_value;
use super::error::EvaluationError;
use super::evaluate::{holds, join};
use super::lookup::{actual, lookup};
use crate::model::{Condition, Node, Test};

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
