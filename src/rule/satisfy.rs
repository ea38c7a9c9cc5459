//! Whether rules can hold together, shown by a node.
//!
//! Rules are compiled into formulas over shared variables (the paths) and tests. A search through
//! the branches of `or` collects what is asked of each variable; [`choice`] finds a value that meets
//! all of it, and the values together are the node. What `trusted.certname` says is what `name`
//! says: a certificate is issued to one name.

mod choice;
mod formula;
mod witness;

use std::collections::HashMap;

pub use formula::Formula;

use self::choice::{Choice, choose};
use self::formula::{Test, Variable};
use crate::model::{Comparison, Condition, Node, Segment};
use crate::rule::regex::Examples;

/// Whether rules can hold together.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// They hold for this node, and for others with the same values at these paths.
    Together(Box<Node>),
    /// No node meets all of them.
    Never,
    /// Nobody can tell with reasonable effort.
    Undecided,
}

/// How many steps one search may take.
const STEPS: usize = 20_000;

/// Decides about rules, keeping what it learns from one question for the next.
#[derive(Debug, Default)]
pub struct Solver {
    variables: Vec<Vec<Segment>>,
    variable_ids: HashMap<Vec<Segment>, Variable>,
    tests: Vec<Comparison>,
    test_ids: HashMap<(u8, String), Test>,
    examples: Examples,
    choices: HashMap<(bool, Vec<Demand>), Choice>,
}

/// A test that must hold, or must not.
type Demand = (Test, bool);

/// What has been asked so far of each variable.
#[derive(Default)]
struct Asked {
    demands: HashMap<Variable, Vec<Demand>>,
    trail: Vec<Variable>,
    steps: usize,
    /// Whether a branch was left because nobody could tell.
    unsure: bool,
}

impl Solver {
    /// Compiles a rule.
    pub fn compile(&mut self, condition: &Condition) -> Formula {
        self.formula(condition, true)
    }

    /// Compiles the opposite of a rule.
    pub fn compile_not(&mut self, condition: &Condition) -> Formula {
        self.formula(condition, false)
    }

    /// Decides whether formulas can hold together.
    pub fn solve(&mut self, formulas: &[&Formula]) -> Verdict {
        let mut asked = Asked::default();
        let found = self.search(formulas.to_vec(), Vec::new(), &mut asked);
        match found {
            Some(node) => Verdict::Together(Box::new(node)),
            None if asked.unsure => Verdict::Undecided,
            None => Verdict::Never,
        }
    }

    /// Takes what must hold, then what is left of the alternatives, the fewest first.
    fn search<'f>(
        &mut self,
        mut pending: Vec<&'f Formula>,
        mut alternatives: Vec<&'f [Formula]>,
        asked: &mut Asked,
    ) -> Option<Node> {
        while let Some(formula) = pending.pop() {
            asked.steps += 1;
            match formula {
                Formula::True => {}
                Formula::False => return None,
                Formula::And(terms) => pending.extend(terms),
                Formula::Or(terms) => alternatives.push(terms),
                Formula::Demand(variable, test, wanted) => {
                    if !self.ask(*variable, (*test, *wanted), asked) {
                        return None;
                    }
                }
            }
        }
        // One that holds anyhow asks for nothing.
        let holds = |it: &Formula| match it {
            Formula::Demand(variable, test, wanted) => {
                asked.demands.get(variable).is_some_and(|all| all.contains(&(*test, *wanted)))
            }
            Formula::True => true,
            _ => false,
        };
        alternatives.retain(|terms| !terms.iter().any(holds));
        let fewest = alternatives.iter().enumerate().min_by_key(|(_, terms)| terms.len());
        let Some(at) = fewest.map(|(at, _)| at) else { return self.witness(asked) };
        let terms = alternatives.swap_remove(at);
        for term in terms {
            if asked.steps > STEPS {
                asked.unsure = true;
                return None;
            }
            let mark = asked.trail.len();
            let found = self.search(vec![term], alternatives.clone(), asked);
            if found.is_some() {
                return found;
            }
            asked.undo(mark);
        }
        None
    }

    /// Asks one thing more of a variable; returns whether a value may still meet it all.
    fn ask(&mut self, variable: Variable, demand: Demand, asked: &mut Asked) -> bool {
        let demands = asked.demands.entry(variable).or_default();
        if demands.contains(&demand) {
            return true;
        }
        demands.push(demand);
        asked.trail.push(variable);
        let demands = demands.clone();
        match self.choice(variable, demands) {
            Choice::Missing | Choice::Value(_) => true,
            Choice::Impossible => false,
            Choice::Unknown => {
                asked.unsure = true;
                false
            }
        }
    }

    fn choice(&mut self, variable: Variable, mut demands: Vec<Demand>) -> Choice {
        demands.sort_unstable();
        let is_name = variable == Self::NAME;
        let key = (is_name, demands);
        if let Some(known) = self.choices.get(&key) {
            return known.clone();
        }
        let tests: Vec<(&Comparison, bool)> = key
            .1
            .iter()
            .filter_map(|(test, wanted)| Some((self.tests.get(*test)?, *wanted)))
            .collect();
        let choice = choose(is_name, &tests, &mut self.examples);
        self.choices.insert(key, choice.clone());
        choice
    }

    fn witness(&mut self, asked: &mut Asked) -> Option<Node> {
        let mut values = Vec::new();
        for (variable, demands) in &asked.demands {
            match self.choice(*variable, demands.clone()) {
                Choice::Value(value) => values.push((*variable, value)),
                Choice::Missing => {}
                Choice::Impossible | Choice::Unknown => return None,
            }
        }
        values.sort_unstable_by_key(|(variable, _)| *variable);
        let ways = values.into_iter().filter_map(|(variable, value)| {
            Some((self.variables.get(variable)?.as_slice(), value))
        });
        let node = witness::node(ways);
        // Values that cannot stand in one node: a text, and something below it.
        asked.unsure |= node.is_none();
        node
    }
}

impl Asked {
    fn undo(&mut self, mark: usize) {
        for variable in self.trail.split_off(mark) {
            if let Some(demands) = self.demands.get_mut(&variable) {
                demands.pop();
            }
        }
    }
}

#[cfg(test)]
mod tests;
