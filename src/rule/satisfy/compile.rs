//! Compiling rules into formulas.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::formula::{Formula, TestNumber, Trial, Variable};
use super::solver::Solver;
use super::test_key::{BorrowedTestKey, TestKey};
use crate::model::{Comparison, Condition, Order, Path, Segment, has_exponent};

/// How the terms of a formula are joined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Junction {
    And,
    Or,
}

impl Solver {
    /// The variable of the certname.
    pub(super) const NAME: Variable = 0;

    pub(super) fn formula(&mut self, condition: &Condition, wanted: bool) -> Formula {
        match (condition, wanted) {
            (Condition::And(terms), true) | (Condition::Or(terms), false) => {
                self.join(terms, wanted, Junction::And)
            }
            (Condition::Or(terms), true) | (Condition::And(terms), false) => {
                self.join(terms, wanted, Junction::Or)
            }
            (Condition::Not(inner), _) => self.formula(inner, !wanted),
            (Condition::Test(test), _) => match self.variable(&test.path) {
                Some(variable) if finds_everything(&test.comparison) && variable == Self::NAME => {
                    constant(wanted)
                }
                Some(variable) => {
                    let test = self.comparison(&test.comparison);
                    Formula::Demand(variable, test, wanted)
                }
                // Nothing is ever found there.
                None => constant(!wanted),
            },
        }
    }

    /// Joins terms into one level, and the texts that one value may equal, or may not, into one
    /// test.
    fn join(&mut self, terms: &[Condition], wanted: bool, junction: Junction) -> Formula {
        let (neutral, decisive) = match junction {
            Junction::And => (Formula::True, Formula::False),
            Junction::Or => (Formula::False, Formula::True),
        };
        let mut joined: Vec<Formula> = Vec::new();
        for term in terms {
            match (self.formula(term, wanted), junction) {
                (term, _) if term == decisive => return decisive,
                (term, _) if term == neutral => {}
                (Formula::And(inner), Junction::And) | (Formula::Or(inner), Junction::Or) => {
                    joined.extend(inner);
                }
                (term, _) => joined.push(term),
            }
        }
        let mut texts: BTreeMap<Variable, BTreeSet<Arc<str>>> = BTreeMap::new();
        let is_alternative = junction == Junction::Or;
        let mut rest = Vec::new();
        for term in joined {
            match self.texts(&term, is_alternative) {
                Some((variable, more)) => texts.entry(variable).or_default().extend(more),
                None => rest.push(term),
            }
        }
        for (variable, texts) in texts {
            let test = self.one_of(texts);
            rest.push(Formula::Demand(variable, test, is_alternative));
        }
        match (rest.pop(), junction) {
            (None, _) => neutral,
            (Some(only), _) if rest.is_empty() => only,
            (Some(last), Junction::And) => {
                rest.push(last);
                Formula::And(rest)
            }
            (Some(last), Junction::Or) => {
                rest.push(last);
                Formula::Or(rest)
            }
        }
    }

    /// Returns the texts that a formula compares a value with, if it does nothing else.
    fn texts(&self, formula: &Formula, wanted: bool) -> Option<(Variable, Vec<Arc<str>>)> {
        let Formula::Demand(variable, test, is) = formula else { return None };
        let texts = match self.tests.get(*test)? {
            Trial::Comparison(Comparison::Equals(text)) if !has_exponent(text) => {
                vec![Arc::clone(text)]
            }
            Trial::OneOf(texts) => texts.to_vec(),
            Trial::Comparison(_) => return None,
        };
        (*is == wanted).then_some((*variable, texts))
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
                "trusted" if first.as_ref() == "certname" => {
                    // A name has nothing below it.
                    if !rest.is_empty() {
                        return None;
                    }
                    way = vec![key("name")];
                }
                "trusted" => {}
                _ => return None,
            },
            _ => return None,
        }
        if self.ways.is_empty() {
            self.variable_at(vec![key("name")]);
        }
        Some(self.variable_at(way))
    }

    fn variable_at(&mut self, way: Vec<Segment>) -> Variable {
        let variable = self.places.number(&way);
        if variable == self.ways.len() {
            self.ways.push(way);
        }
        variable
    }

    fn comparison(&mut self, comparison: &Comparison) -> TestNumber {
        let operator = match comparison {
            Comparison::Equals(_) => 0,
            Comparison::Finds(_) => 1,
            Comparison::Contains(_) => 2,
            Comparison::Number(comparison) => match comparison.order {
                Order::Greater => 3,
                Order::AtLeast => 4,
                Order::Less => 5,
                Order::AtMost => 6,
            },
        };
        let key = BorrowedTestKey { operator, operand: comparison.operand() };
        let test = self.test_ids.get(&key).copied().unwrap_or_else(|| {
            let test = self.add_test(Trial::Comparison(comparison.clone()));
            self.test_ids.insert(TestKey::from(key), test);
            test
        });
        if let Comparison::Contains(text) = comparison
            && !self.of_elements.contains_key(&test)
        {
            let equal = self.comparison(&Comparison::Equals(Arc::clone(text)));
            self.of_elements.insert(test, equal);
        }
        test
    }

    fn one_of(&mut self, texts: BTreeSet<Arc<str>>) -> TestNumber {
        let texts: Vec<Arc<str>> = texts.into_iter().collect();
        if let [only] = texts.as_slice() {
            return self.comparison(&Comparison::Equals(Arc::clone(only)));
        }
        if let Some(known) = self.list_ids.get(texts.as_slice()) {
            return *known;
        }
        let test = self.add_test(Trial::OneOf(texts.clone().into()));
        self.list_ids.insert(texts.into(), test);
        test
    }

    fn add_test(&mut self, trial: Trial) -> TestNumber {
        self.tests.push(trial);
        self.tests.len() - 1
    }
}

fn constant(holds: bool) -> Formula {
    if holds { Formula::True } else { Formula::False }
}

/// Returns whether a comparison holds for every name, as that of the root group.
fn finds_everything(comparison: &Comparison) -> bool {
    matches!(comparison, Comparison::Finds(pattern) if matches!(pattern.as_str(), ".*" | ""))
}
