//! The search for a node that meets formulas.

use std::sync::Arc;

use hashbrown::HashMap;

use super::choice::{Choice, choose};
use super::formula::{Demand, Formula, TestNumber, Trial, Variable};
use super::place::{PathDepth, Relation, ValuePlace};
use super::sets::Sets;
use super::test_key::TestKey;
use super::witness::{self, Placed};
use crate::java_regex::{Automata, Examples};
use crate::model::{Comparison, Condition, Node, Segment};

/// Whether rules can hold together.
#[derive(Clone, Debug, PartialEq)]
pub enum Satisfiability {
    /// They hold for this node, and for others with the same values at these paths.
    Together(Box<Node>),
    /// No node meets all of them.
    Never,
    /// It cannot be decided with reasonable effort.
    Undecided,
}

/// How many steps one search may take.
const STEPS: usize = 20_000;

/// Decides about rules, keeping what it learns from one question for the next.
#[derive(Debug, Default)]
pub struct Solver {
    pub(super) places: Vec<ValuePlace>,
    pub(super) variables: HashMap<Vec<Segment>, Variable>,
    pub(super) tests: Vec<Trial>,
    pub(super) test_ids: HashMap<TestKey, TestNumber>,
    /// Of lists of which a text must be one.
    pub(super) list_ids: HashMap<Box<[Arc<str>]>, TestNumber>,
    /// Of a test whether a list has a text: whether an element equals it.
    pub(super) of_elements: HashMap<TestNumber, TestNumber>,
    pub(super) examples: Examples,
    pub(super) choices: HashMap<(bool, Vec<Demand>), Choice>,
    pub(super) sets: Sets,
    pub(super) steps: u64,
}

/// How many choices are remembered.
const REMEMBERED: usize = 100_000;

/// What has been asked so far of each variable.
#[derive(Default)]
struct AskedVariables {
    demands: HashMap<Variable, Vec<Demand>>,
    trail: Vec<Variable>,
    steps: usize,
    /// Whether a branch was left because it could not be decided.
    unsure: bool,
}

impl Solver {
    /// Creates a solver that uses the automata of others.
    pub fn sharing(automata: &Arc<Automata>) -> Self {
        Self { examples: Examples::sharing(automata), ..Self::default() }
    }

    /// Compiles a rule.
    pub fn compile(&mut self, condition: &Condition) -> Formula {
        self.formula(condition, true)
    }

    /// Compiles the opposite of a rule.
    pub fn compile_not(&mut self, condition: &Condition) -> Formula {
        self.formula(condition, false)
    }

    /// Returns how many steps were taken so far, whatever for.
    pub fn steps(&self) -> u64 {
        self.steps + self.examples.steps()
    }

    /// Decides whether formulas can hold together.
    pub fn solve(&mut self, formulas: &[&Formula]) -> Satisfiability {
        let mut asked = AskedVariables::default();
        let found = self.search(formulas.to_vec(), Vec::new(), &mut asked);
        self.steps += asked.steps as u64;
        match found {
            Some(node) => Satisfiability::Together(Box::new(node)),
            None if asked.unsure => Satisfiability::Undecided,
            None => Satisfiability::Never,
        }
    }

    /// Takes what must hold, then what is left of the alternatives, the fewest first.
    fn search<'f>(
        &mut self,
        mut pending: Vec<&'f Formula>,
        mut alternatives: Vec<&'f [Formula]>,
        asked: &mut AskedVariables,
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
    fn ask(&mut self, variable: Variable, demand: Demand, asked: &mut AskedVariables) -> bool {
        if asked.has(variable, demand) {
            return true;
        }
        if !self.ask_alone(variable, demand, asked) {
            return false;
        }
        if demand.1 {
            return self.fits(variable, asked);
        }
        let Some(equals) = self.of_elements.get(&demand.0).copied() else { return true };
        // What a list does not have, none of its elements is.
        let related = self.places.get(variable).map(|it| it.related.clone());
        related.into_iter().flatten().all(|(element, relation)| match relation {
            Relation::HoldsInList(PathDepth::Element(_)) => {
                let demand = (equals, false);
                asked.has(element, demand) || self.ask_alone(element, demand, asked)
            }
            _ => true,
        })
    }

    fn ask_alone(
        &mut self,
        variable: Variable,
        demand: Demand,
        asked: &mut AskedVariables,
    ) -> bool {
        asked.steps += 1;
        let demands = asked.demands.entry(variable).or_default();
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

    /// Returns whether a value at one place and those at others can stand in one node.
    fn fits(&self, variable: Variable, asked: &AskedVariables) -> bool {
        let Some(place) = self.places.get(variable) else { return true };
        place.related.iter().all(|(other, relation)| match relation {
            _ if !asked.is_there(*other) => true,
            Relation::HoldsInList(_) => self.is_list(variable, asked),
            Relation::InList(_) => self.is_list(*other, asked),
            Relation::HoldsInObject | Relation::InObject | Relation::Apart => false,
        })
    }

    /// Returns whether what must be at a place is a list.
    fn is_list(&self, variable: Variable, asked: &AskedVariables) -> bool {
        let contains = |test: &TestNumber| {
            matches!(self.tests.get(*test), Some(Trial::Comparison(Comparison::Contains(_))))
        };
        asked.of(variable).iter().all(|(test, wanted)| !wanted || contains(test))
    }

    pub(super) fn choice(&mut self, variable: Variable, mut demands: Vec<Demand>) -> Choice {
        demands.sort_unstable();
        let is_name = variable == Self::NAME;
        let key = (is_name, demands);
        if let Some(known) = self.choices.get(&key) {
            return known.clone();
        }
        let choice = self.choose(is_name, &key.1);
        if self.choices.len() >= REMEMBERED {
            self.choices.clear();
        }
        self.choices.insert(key, choice.clone());
        choice
    }

    pub(super) fn choose(&mut self, is_name: bool, demands: &[Demand]) -> Choice {
        let tests: Vec<(&Trial, bool)> = demands
            .iter()
            .filter_map(|(test, wanted)| Some((self.tests.get(*test)?, *wanted)))
            .collect();
        let size = |trial: &Trial| match trial {
            Trial::Comparison(_) => 1,
            Trial::OneOf(texts) => texts.len() as u64,
        };
        self.steps += tests.iter().map(|(trial, _)| size(trial)).sum::<u64>();
        choose(is_name, &tests, &mut self.examples)
    }

    fn witness(&mut self, asked: &mut AskedVariables) -> Option<Node> {
        let mut values = Vec::new();
        for (variable, demands) in &asked.demands {
            match self.choice(*variable, demands.clone()) {
                Choice::Value(value) => values.push((*variable, value)),
                Choice::Missing => {}
                Choice::Impossible | Choice::Unknown => return None,
            }
        }
        values.sort_unstable_by_key(|(variable, _)| *variable);
        let placed = values.into_iter().filter_map(|(variable, value)| {
            let place = self.places.get(variable)?;
            let behind = place.related.iter().filter_map(|(other, relation)| match relation {
                Relation::HoldsInList(depth) if !asked.of(*other).is_empty() => {
                    Some(depth.index().saturating_add(1))
                }
                _ => None,
            });
            Some(Placed { way: &place.way, value, before: behind.max().unwrap_or_default() })
        });
        let node = witness::node(placed.collect());
        // A list that would have to be too long.
        asked.unsure |= node.is_none();
        node
    }
}

impl AskedVariables {
    /// Returns what is asked of a variable.
    fn of(&self, variable: Variable) -> &[Demand] {
        self.demands.get(&variable).map_or(&[], Vec::as_slice)
    }

    fn has(&self, variable: Variable, demand: Demand) -> bool {
        self.of(variable).contains(&demand)
    }

    /// Returns whether a variable must have a value.
    fn is_there(&self, variable: Variable) -> bool {
        self.of(variable).iter().any(|(_, wanted)| *wanted)
    }

    fn undo(&mut self, mark: usize) {
        for variable in self.trail.split_off(mark) {
            if let Some(demands) = self.demands.get_mut(&variable) {
                demands.pop();
            }
        }
    }
}
