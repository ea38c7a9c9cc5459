//! The search for a node that meets formulas.

use std::sync::Arc;

use hashbrown::HashMap;

use super::choice::{Choice, choose};
use super::formula::{Demand, Formula, TestNumber, Trial, Variable};
use super::sets::Sets;
use super::test_key::TestKey;
use super::witness::{self, Placed};
use crate::java_regex::{Automata, Examples};
use crate::model::{Comparison, Condition, Node, Segment};
use crate::rule::place_tree::{HeldKind, HeldPlaces, PlaceTree};

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
    /// The places of variables, by their numbers.
    pub(super) places: PlaceTree,
    /// The paths of variables.
    pub(super) ways: Vec<Vec<Segment>>,
    pub(super) tests: Vec<Trial>,
    pub(super) test_ids: HashMap<TestKey, TestNumber>,
    /// Of lists of which a text must be one.
    pub(super) list_ids: HashMap<Box<[Arc<str>]>, TestNumber>,
    /// Of a test whether a list has a text: whether an element equals it.
    pub(super) of_elements: HashMap<TestNumber, TestNumber>,
    pub(super) examples: Examples,
    pub(super) choices: HashMap<(bool, Vec<Demand>), Choice>,
    /// How many demands the choices that are remembered have together.
    remembered: usize,
    asked: AskedVariables,
    pub(super) sets: Sets,
    pub(super) steps: u64,
    /// How many steps may be taken; none if as many as it takes.
    budget: Option<u64>,
}

/// How many demands the choices that are remembered have together at most.
const REMEMBERED: usize = 1_000_000;

/// How many times a text is put to a test in one step.
const TRIALS: u64 = 16;

/// How many demands on one variable are tried one after the other where it is not known whether all can be met.
const TRIED: usize = 64;

/// What has been asked so far of each variable.
#[derive(Debug, Default)]
struct AskedVariables {
    demands: Vec<Vec<Demand>>,
    held: HeldPlaces,
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

    /// Makes it take about so many steps at most: what is asked beyond them is not decided.
    #[must_use]
    pub fn within(self, steps: u64) -> Self {
        Self { budget: Some(steps), ..self }
    }

    /// Returns how many steps may still be taken.
    pub(super) fn left(&self) -> u64 {
        self.budget.map_or(u64::MAX, |it| it.saturating_sub(self.steps()))
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
        let mut asked = std::mem::take(&mut self.asked);
        (asked.steps, asked.unsure) = (0, false);
        asked.demands.resize_with(self.places.len(), Vec::new);
        asked.held.fit(&self.places);
        let found = self.search(formulas.to_vec(), Vec::new(), &mut asked);
        asked.undo(0, &self.places);
        self.steps += asked.steps as u64;
        let is_unsure = asked.unsure;
        self.asked = asked;
        match found {
            Some(node) => Satisfiability::Together(Box::new(node)),
            None if is_unsure => Satisfiability::Undecided,
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
        let mark = asked.trail.len();
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
        if !self.can_be_met_since(mark, asked) {
            return None;
        }
        self.steps += alternatives.iter().map(|terms| terms.len() as u64).sum::<u64>();
        // One that holds anyhow asks for nothing.
        let holds = |it: &Formula| match it {
            Formula::Demand(variable, test, wanted) => asked.has(*variable, (*test, *wanted)),
            Formula::True => true,
            _ => false,
        };
        alternatives.retain(|terms| !terms.iter().any(holds));
        let fewest = alternatives.iter().enumerate().min_by_key(|(_, terms)| terms.len());
        let Some(at) = fewest.map(|(at, _)| at) else { return self.witness(asked) };
        let terms = alternatives.swap_remove(at);
        for term in terms {
            if asked.steps > STEPS || self.left() == 0 {
                asked.unsure = true;
                return None;
            }
            let mark = asked.trail.len();
            self.steps += alternatives.len() as u64;
            let found = self.search(vec![term], alternatives.clone(), asked);
            if found.is_some() {
                return found;
            }
            asked.undo(mark, &self.places);
        }
        None
    }

    /// Asks one thing more of a variable; returns whether a value that meets it has room beside those at other places.
    fn ask(&mut self, variable: Variable, demand: Demand, asked: &mut AskedVariables) -> bool {
        if !self.note(variable, demand, asked) {
            return true;
        }
        if demand.1 {
            let held = |it: Variable| self.held(asked.of(it));
            return asked.held.leave_room(&self.places, variable, held);
        }
        if let Some(equals) = self.of_elements.get(&demand.0).copied() {
            // What a list does not have, none of its elements is.
            for element in self.places.elements(variable) {
                self.note(element, (equals, false), asked);
            }
        }
        true
    }

    /// Notes what is asked of a variable; returns whether it was not asked before.
    fn note(&mut self, variable: Variable, demand: Demand, asked: &mut AskedVariables) -> bool {
        self.steps += asked.of(variable).len() as u64;
        if asked.has(variable, demand) {
            return false;
        }
        asked.steps += 1;
        if demand.1 && !asked.is_there(variable) {
            self.steps += self.places.depth(variable) as u64;
            asked.held.hold(&self.places, variable);
        }
        if let Some(demands) = asked.demands.get_mut(variable) {
            demands.push(demand);
        }
        asked.trail.push(variable);
        true
    }

    /// Returns whether each variable of which something was asked since then has a value that meets all of it.
    fn can_be_met_since(&mut self, mark: usize, asked: &mut AskedVariables) -> bool {
        let mut variables = asked.trail.get(mark..).unwrap_or_default().to_vec();
        variables.sort_unstable();
        variables.dedup();
        let mut is_unsure = false;
        for variable in variables {
            match self.choice(variable, asked.of(variable).to_vec()) {
                Choice::Missing | Choice::Value(_) => {}
                Choice::Impossible => return false,
                Choice::Unknown if self.contradict(variable, asked.of(variable)) => return false,
                Choice::Unknown => is_unsure = true,
            }
        }
        asked.unsure |= is_unsure;
        !is_unsure
    }

    /// Returns whether the first of some demands contradict each other, however many of them.
    fn contradict(&mut self, variable: Variable, demands: &[Demand]) -> bool {
        (1..demands.len().min(TRIED))
            .filter_map(|it| demands.get(..it))
            .map(|first| self.choice(variable, first.to_vec()))
            .find(|it| matches!(it, Choice::Impossible | Choice::Unknown))
            .is_some_and(|it| it == Choice::Impossible)
    }

    /// Returns what must be at a place of which this is asked.
    fn held(&self, demands: &[Demand]) -> HeldKind {
        let wants_element = |test: &TestNumber| {
            matches!(self.tests.get(*test), Some(Trial::Comparison(Comparison::Contains(_))))
        };
        let mut held = HeldKind::Nothing;
        for (test, _) in demands.iter().filter(|it| it.1) {
            if !wants_element(test) {
                return HeldKind::Single;
            }
            held = HeldKind::List;
        }
        held
    }

    pub(super) fn choice(&mut self, variable: Variable, mut demands: Vec<Demand>) -> Choice {
        self.steps += demands.len() as u64;
        demands.sort_unstable();
        let is_name = variable == Self::NAME;
        let key = (is_name, demands);
        if let Some(known) = self.choices.get(&key) {
            return known.clone();
        }
        if self.left() == 0 {
            return Choice::Unknown;
        }
        let choice = self.choose(is_name, &key.1);
        self.remembered += key.1.len() + 1;
        if self.remembered > REMEMBERED {
            self.choices.clear();
            self.remembered = key.1.len() + 1;
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
        // Each text that a value may equal is put to the tests, until one fails.
        let equal = tests.iter().filter(|it| it.1).map(|(trial, _)| size(trial)).max();
        self.steps += equal.unwrap_or(0) * tests.len() as u64 / TRIALS;
        let left = self.left();
        choose(is_name, &tests, &mut self.examples, left)
    }

    fn witness(&mut self, asked: &mut AskedVariables) -> Option<Node> {
        let mut variables = asked.trail.clone();
        variables.sort_unstable();
        variables.dedup();
        // How many elements of each list have a place of their own.
        let mut before: HashMap<Variable, u64> = HashMap::new();
        for (list, index) in variables.iter().flat_map(|it| self.places.lists_around(*it)) {
            let before = before.entry(list).or_default();
            *before = index.saturating_add(1).max(*before);
        }
        let mut values = Vec::new();
        for variable in variables {
            match self.choice(variable, asked.of(variable).to_vec()) {
                Choice::Value(value) => values.push((variable, value)),
                Choice::Missing => {}
                Choice::Impossible | Choice::Unknown => return None,
            }
        }
        let placed = values.into_iter().filter_map(|(variable, value)| {
            let before = before.get(&variable).copied().unwrap_or_default();
            Some(Placed { way: self.ways.get(variable)?, value, before })
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
        self.demands.get(variable).map_or(&[], Vec::as_slice)
    }

    fn has(&self, variable: Variable, demand: Demand) -> bool {
        self.of(variable).contains(&demand)
    }

    /// Returns whether a variable must have a value.
    fn is_there(&self, variable: Variable) -> bool {
        self.of(variable).iter().any(|(_, wanted)| *wanted)
    }

    fn undo(&mut self, mark: usize, places: &PlaceTree) {
        while self.trail.len() > mark {
            let Some(variable) = self.trail.pop() else { return };
            let last = self.demands.get_mut(variable).and_then(Vec::pop);
            if last.is_some_and(|it| it.1) && !self.is_there(variable) {
                self.held.release(places, variable);
            }
        }
    }
}
