//! What a rule demands of each variable, so that most pairs of rules that cannot hold together are
//! told apart without a search.
//!
//! An outline is at most what the rule demands: a rule that holds meets one of its alternatives.

use hashbrown::HashSet;

use super::choice::Choice;
use super::formula::{Demand, Formula, TestNumber, Trial, Variable};
use super::sets::{Demanded, Set};
use super::shape::ValueShape;
use super::solver::Solver;
use crate::java_regex::Pattern;
use crate::model::Comparison;

/// The alternatives of a rule: what each demands, by variable.
#[derive(Clone, Debug)]
pub struct Outline(Vec<Vec<(Variable, Set)>>);

/// How many alternatives an outline has at most; what goes beyond is left out of it.
const ALTERNATIVES: usize = 16;

/// How many comparisons of sets are remembered.
const REMEMBERED: usize = 1_000_000;

/// An alternative while it is made.
type Demands = Vec<(Variable, Demand)>;

impl Solver {
    /// Builds on all processors the automata that outlines ask for: most of the time goes there. What only must
    /// not be found, or stands in an `or` that outlines leave out, is not built.
    /// Each item has formulas that hold together.
    pub fn prepare<'f>(&self, together: impl Iterator<Item = Vec<&'f Formula>>) {
        let mut tests: HashSet<TestNumber> = HashSet::new();
        for formulas in together {
            for (variable, (test, wanted)) in
                alternatives(&formulas).into_iter().flatten().flatten()
            {
                // What must not be there asks for no text, unless it is a name.
                if wanted || variable == Self::NAME {
                    tests.insert(test);
                }
            }
        }
        let pattern = |it: TestNumber| match self.tests.get(it)? {
            Trial::Comparison(Comparison::Finds(pattern)) => Some(pattern),
            _ => None,
        };
        let patterns: Vec<&Pattern> = tests.into_iter().filter_map(pattern).collect();
        self.examples.prepare(&patterns, self.left());
    }

    /// Outlines formulas that hold together.
    /// Where the budget is used up it says that anything may be demanded.
    pub fn outline(&mut self, formulas: &[&Formula]) -> Outline {
        if self.left() == 0 {
            return Outline(vec![Vec::new()]);
        }
        let alternatives = alternatives(formulas).unwrap_or_default();
        Outline(alternatives.into_iter().filter_map(|it| self.sets(it)).collect())
    }

    /// Returns the demands by variable; none if some cannot be met.
    fn sets(&mut self, mut demands: Demands) -> Option<Vec<(Variable, Set)>> {
        demands.sort_unstable();
        demands.dedup();
        let mut sets = Vec::new();
        for of_one in demands.chunk_by(|a, b| a.0 == b.0) {
            let Some((variable, _)) = of_one.first() else { continue };
            let key = (*variable == Self::NAME, of_one.iter().map(|it| it.1).collect::<Vec<_>>());
            let set = match self.sets.numbers.get(&key) {
                Some(known) => *known,
                None => {
                    if self.choose(key.0, &key.1) == Choice::Impossible {
                        return None;
                    }
                    let set = Set::try_from(self.sets.all.len()).ok()?;
                    let shape = self.shape(&key.1);
                    let (is_name, demands) = key.clone();
                    self.sets.all.push(Demanded { is_name, demands, shape });
                    self.sets.numbers.insert(key, set);
                    set
                }
            };
            sets.push((*variable, set));
        }
        Some(sets)
    }

    fn shape(&mut self, demands: &[Demand]) -> ValueShape {
        let tests: Vec<(&Trial, bool)> = demands
            .iter()
            .filter_map(|(test, wanted)| Some((self.tests.get(*test)?, *wanted)))
            .collect();
        ValueShape::of(&tests, &mut self.sets.texts, &mut self.examples)
    }

    /// Returns whether two outlined rules may hold together; if not, they never do.
    pub fn may_meet(&mut self, one: &Outline, other: &Outline) -> bool {
        one.0.iter().any(|mine| other.0.iter().any(|theirs| self.fit_together(mine, theirs)))
    }

    fn fit_together(&mut self, mine: &[(Variable, Set)], theirs: &[(Variable, Set)]) -> bool {
        let mut theirs = theirs.iter().copied().peekable();
        for (variable, set) in mine {
            while theirs.next_if(|it| it.0 < *variable).is_some() {}
            if let Some((_, other)) = theirs.next_if(|it| it.0 == *variable)
                && !self.can_be_met(*set, other)
            {
                return false;
            }
        }
        true
    }

    /// Returns whether some value may meet two sets of demands.
    fn can_be_met(&mut self, one: Set, other: Set) -> bool {
        self.steps += 1;
        if one == other {
            return true;
        }
        let of = |set: Set| self.sets.all.get(set as usize);
        let (Some(mine), Some(theirs)) = (of(one), of(other)) else { return true };
        if !mine.shape.fits(&theirs.shape) {
            return false;
        }
        let key = (one.min(other), one.max(other));
        if let Some(known) = self.sets.compared.get(&key) {
            return *known;
        }
        let mut both: Vec<Demand> = mine.demands.iter().chain(&theirs.demands).copied().collect();
        both.sort_unstable();
        both.dedup();
        let can = self.choose(mine.is_name, &both) != Choice::Impossible;
        if self.sets.compared.len() < REMEMBERED {
            self.sets.compared.insert(key, can);
        }
        can
    }
}

/// Returns what formulas that hold together demand, one alternative of it each; `None` if they never hold.
fn alternatives(formulas: &[&Formula]) -> Option<Vec<Demands>> {
    let mut certain: Demands = Vec::new();
    let mut branches: Vec<&[Formula]> = Vec::new();
    let mut pending: Vec<&Formula> = formulas.to_vec();
    while let Some(formula) = pending.pop() {
        match formula {
            Formula::True => {}
            Formula::False => return None,
            Formula::And(terms) => pending.extend(terms),
            Formula::Or(terms) => branches.push(terms),
            Formula::Demand(variable, test, wanted) => {
                certain.push((*variable, (*test, *wanted)));
            }
        }
    }
    branches.sort_by_key(|it| it.len());
    let mut alternatives = vec![certain];
    for branch in branches {
        if alternatives.len() * branch.len() > ALTERNATIVES {
            continue;
        }
        let terms: Vec<Demands> = branch.iter().map(demands).collect();
        let joined = |it: &Demands| -> Vec<Demands> {
            terms.iter().map(|term| [it.as_slice(), term].concat()).collect()
        };
        alternatives = alternatives.iter().flat_map(joined).collect();
    }
    Some(alternatives)
}

/// Returns what must be met for a formula to hold, as far as it leaves no choice.
fn demands(formula: &Formula) -> Demands {
    match formula {
        Formula::Demand(variable, test, wanted) => vec![(*variable, (*test, *wanted))],
        Formula::And(terms) => terms.iter().flat_map(demands).collect(),
        Formula::True | Formula::False | Formula::Or(_) => Vec::new(),
    }
}
