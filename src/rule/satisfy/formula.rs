//! Rules with every `not` at a test, over numbered variables and tests.

use super::Solver;
use crate::model::{Comparison, Condition, Order, Path, Segment};

/// The number of a path.
pub(super) type Variable = usize;

/// The number of a test.
pub(super) type Test = usize;

/// A compiled rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// It always holds.
    True,
    /// It never holds.
    False,
    /// All of them hold.
    And(Vec<Self>),
    /// At least one of them holds.
    Or(Vec<Self>),
    /// The value of a variable passes a test, or does not.
    Demand(Variable, Test, bool),
}

impl Solver {
    /// The variable of the certname.
    pub(super) const NAME: Variable = 0;

    pub(super) fn formula(&mut self, condition: &Condition, wanted: bool) -> Formula {
        let all = |solver: &mut Self, terms: &[Condition]| -> Vec<Formula> {
            terms.iter().map(|it| solver.formula(it, wanted)).collect()
        };
        match (condition, wanted) {
            (Condition::And(terms), true) | (Condition::Or(terms), false) => {
                Formula::And(all(self, terms))
            }
            (Condition::Or(terms), true) | (Condition::And(terms), false) => {
                Formula::Or(all(self, terms))
            }
            (Condition::Not(inner), _) => self.formula(inner, !wanted),
            (Condition::Test(test), _) => match self.variable(&test.path) {
                Some(variable) if finds_everything(&test.comparison) && variable == Self::NAME => {
                    if wanted {
                        Formula::True
                    } else {
                        Formula::False
                    }
                }
                Some(variable) => Formula::Demand(variable, self.test(&test.comparison), wanted),
                // Nothing is ever found there.
                None if wanted => Formula::False,
                None => Formula::True,
            },
        }
    }

    /// Returns the variable of a path at which something can be found.
    fn variable(&mut self, path: &Path) -> Option<Variable> {
        let key = |text: &str| Segment::Key(text.into());
        let mut way: Vec<Segment> = match path {
            Path::Name => vec![key("name")],
            Path::Bare(_) => return None,
            Path::Segments(segments) => segments.to_vec(),
        };
        match way.as_mut_slice() {
            [Segment::Key(root)] if root.as_ref() == "name" => {}
            [Segment::Key(root), Segment::Key(first), rest @ ..] => match root.as_ref() {
                "facts" => *root = "fact".into(),
                "fact" => {}
                "trusted" if rest.is_empty() && first.as_ref() == "certname" => {
                    way = vec![key("name")];
                }
                "trusted" => {}
                _ => return None,
            },
            _ => return None,
        }
        if self.variables.is_empty() {
            self.variable_ids.insert(vec![key("name")], Self::NAME);
            self.variables.push(vec![key("name")]);
        }
        if let Some(known) = self.variable_ids.get(&way) {
            return Some(*known);
        }
        let variable = self.variables.len();
        self.variable_ids.insert(way.clone(), variable);
        self.variables.push(way);
        Some(variable)
    }

    fn test(&mut self, comparison: &Comparison) -> Test {
        let operator = match comparison {
            Comparison::Equals(_) => 0,
            Comparison::Finds(_) => 1,
            Comparison::Contains(_) => 2,
            Comparison::Number { order: Order::Greater, .. } => 3,
            Comparison::Number { order: Order::AtLeast, .. } => 4,
            Comparison::Number { order: Order::Less, .. } => 5,
            Comparison::Number { order: Order::AtMost, .. } => 6,
        };
        let key = (operator, comparison.operand().to_owned());
        if let Some(known) = self.test_ids.get(&key) {
            return *known;
        }
        let test = self.tests.len();
        self.test_ids.insert(key, test);
        self.tests.push(comparison.clone());
        test
    }
}

/// Returns whether a comparison holds for every name, as that of the root group.
fn finds_everything(comparison: &Comparison) -> bool {
    matches!(comparison, Comparison::Finds(pattern) if matches!(pattern.as_str(), ".*" | ""))
}
