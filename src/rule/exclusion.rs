//! Proofs that conditions exclude each other.
//!
//! The solver looks for a node that meets rules; this looks for a proof that there is none. Each step
//! of a proof is certain: what is not understood may hold. What `trusted.certname` says is what `name`
//! says, as a certificate is issued to one name.

mod plain;
#[cfg(test)]
mod tests;
mod value;

use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use super::evaluate::holds;
use super::lookup::Actual;
use crate::java_regex::{Automata, Example, Examples};
use crate::model::{Comparison, Condition, Path, Segment};
use value::ValueDemand;

/// The number of a path.
type PathNumber = usize;

/// What must be so for a condition to hold.
#[derive(Clone, Debug)]
pub enum Claim<'r> {
    /// Nothing that is understood.
    Free,
    /// All of these.
    All(Vec<Self>),
    /// At least one of these.
    Any(Vec<Self>),
    /// The value at a path passes a comparison, or does not.
    Value(usize, &'r Comparison, bool),
}

/// Proves that conditions exclude each other.
#[derive(Debug)]
pub struct Prover<'r> {
    variables: HashMap<Vec<Segment>, PathNumber>,
    /// The variables of paths that were seen, by their address: rules share most, and outlive this.
    seen: HashMap<usize, Option<PathNumber>>,
    ways: Vec<Vec<Segment>>,
    examples: Option<Examples>,
    /// Whether there is a text of printable ASCII as patterns and texts want it.
    known: HashMap<Vec<(&'r str, u8)>, bool>,
}

/// What is claimed of each variable in one branch of the search.
#[derive(Default)]
struct SearchBranch<'r> {
    demands: HashMap<PathNumber, SmallVec<[ValueDemand<'r>; 2]>>,
    trail: Vec<PathNumber>,
    steps: usize,
}

/// Whether a branch of the search is refuted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BranchOutcome {
    Refuted,
    Open,
}

/// The variable of the certname.
const NAME: PathNumber = 0;

impl<'r> Prover<'r> {
    /// Creates a prover that compares texts, and tries patterns on texts.
    pub fn quick() -> Self {
        let name = vec![Segment::Key("name".into())];
        Self {
            variables: HashMap::from([(name.clone(), NAME)]),
            seen: HashMap::new(),
            ways: vec![name],
            examples: None,
            known: HashMap::new(),
        }
    }

    /// Creates a prover that compares patterns with each other, too, which takes time and memory.
    pub fn thorough(automata: &Arc<Automata>) -> Self {
        Self { examples: Some(Examples::sharing(automata)), ..Self::quick() }
    }

    /// Returns what must be so for a condition to hold.
    pub fn claim(&mut self, condition: &'r Condition) -> Claim<'r> {
        self.compile(condition, true)
    }

    fn compile(&mut self, condition: &'r Condition, wanted: bool) -> Claim<'r> {
        let terms = match condition {
            Condition::And(terms) | Condition::Or(terms) => terms,
            Condition::Not(inner) => return self.compile(inner, !wanted),
            Condition::Test(test) => {
                // That nothing is found there, or that the operand is not a number, is said otherwise.
                let is_number = !test.comparison.lacks_number();
                return match self.variable(&test.path).filter(|_| is_number) {
                    Some(variable) => Claim::Value(variable, &test.comparison, wanted),
                    None => Claim::Free,
                };
            }
        };
        let claims: Vec<Claim<'r>> = terms.iter().map(|it| self.compile(it, wanted)).collect();
        if matches!(condition, Condition::And(_)) == wanted {
            Claim::All(claims)
        } else if claims.iter().any(|it| matches!(it, Claim::Free)) {
            Claim::Free
        } else {
            Claim::Any(claims)
        }
    }

    /// Returns the variable of a path at which something can be found.
    fn variable(&mut self, path: &'r Path) -> Option<PathNumber> {
        let segments = match path {
            _ if is_name(path) => return Some(NAME),
            Path::Segments(segments) => segments,
            Path::Name | Path::Bare(_) => return None,
        };
        let address = segments.as_ptr().addr();
        if let Some(known) = self.seen.get(&address) {
            return *known;
        }
        let variable = self.variable_at(segments);
        self.seen.insert(address, variable);
        variable
    }

    fn variable_at(&mut self, segments: &[Segment]) -> Option<PathNumber> {
        let way = match segments {
            [Segment::Key(root), first @ Segment::Key(_), rest @ ..]
                if matches!(root.as_ref(), "fact" | "facts" | "trusted") =>
            {
                let root = if root.as_ref() == "trusted" { "trusted" } else { "fact" };
                let start = [Segment::Key(root.into()), first.clone()];
                start.into_iter().chain(rest.iter().cloned()).collect::<Vec<_>>()
            }
            _ => return None,
        };
        let next = self.ways.len();
        Some(*self.variables.entry(way).or_insert_with_key(|way| {
            self.ways.push(way.clone());
            next
        }))
    }

    /// Returns whether no node meets all claims; what takes more than so many steps is not proven.
    pub fn excludes(&mut self, claims: &[&Claim<'r>], steps: usize) -> bool {
        let mut branch = SearchBranch { steps, ..SearchBranch::default() };
        self.search(claims.to_vec(), Vec::new(), &mut branch) == BranchOutcome::Refuted
    }

    /// Takes what must be so, then each of the alternatives, the fewest first.
    fn search<'c>(
        &mut self,
        mut pending: Vec<&'c Claim<'r>>,
        mut alternatives: Vec<&'c [Claim<'r>]>,
        branch: &mut SearchBranch<'r>,
    ) -> BranchOutcome {
        while let Some(claim) = pending.pop() {
            if !branch.step(1) {
                return BranchOutcome::Open;
            }
            match claim {
                Claim::Free => {}
                Claim::All(claims) => pending.extend(claims),
                Claim::Any(claims) => alternatives.push(claims),
                Claim::Value(variable, comparison, wanted) => {
                    if self.add(*variable, (comparison, *wanted), branch) == BranchOutcome::Refuted
                    {
                        return BranchOutcome::Refuted;
                    }
                }
            }
        }
        let is_given = |claim: &Claim<'r>| match claim {
            Claim::Free => true,
            Claim::Value(variable, comparison, wanted) => {
                branch.of(*variable).contains(&(*comparison, *wanted))
            }
            Claim::All(_) | Claim::Any(_) => false,
        };
        alternatives.retain(|claims| !claims.iter().any(is_given));
        let fewest = alternatives.iter().enumerate().min_by_key(|(_, claims)| claims.len());
        let Some(at) = fewest.map(|(at, _)| at) else { return BranchOutcome::Open };
        let claims = alternatives.swap_remove(at);
        for claim in claims {
            if !branch.step(1 + alternatives.len()) {
                return BranchOutcome::Open;
            }
            let mark = branch.trail.len();
            let outcome = self.search(vec![claim], alternatives.clone(), branch);
            branch.undo(mark);
            if outcome == BranchOutcome::Open {
                return BranchOutcome::Open;
            }
        }
        BranchOutcome::Refuted
    }

    /// Adds what is claimed of a value; refuted if no value is like that, or not beside the others.
    fn add(
        &mut self,
        variable: PathNumber,
        demand: ValueDemand<'r>,
        branch: &mut SearchBranch<'r>,
    ) -> BranchOutcome {
        let demands = branch.demands.entry(variable).or_default();
        if demands.contains(&demand) {
            return BranchOutcome::Open;
        }
        demands.push(demand);
        let count = demands.len();
        branch.trail.push(variable);
        if !branch.step(count) {
            return BranchOutcome::Open;
        }
        let is_name = variable == NAME;
        let demands = branch.of(variable);
        let refuted = value::is_impossible(is_name, demands)
            || (demand.1 && self.stands_apart(variable, branch))
            || self.patterns_exclude(is_name, demands);
        if refuted { BranchOutcome::Refuted } else { BranchOutcome::Open }
    }

    /// Returns whether what must be at a path leaves no place for what must be at another.
    fn stands_apart(&self, variable: PathNumber, branch: &SearchBranch<'r>) -> bool {
        let Some(way) = self.ways.get(variable) else { return false };
        let mut others =
            branch.demands.iter().filter(|(_, it)| it.iter().any(|(_, wanted)| *wanted));
        others.any(|(other, demands)| {
            let Some(other_way) = self.ways.get(*other) else { return false };
            let own = branch.of(variable);
            match way.iter().zip(other_way).find(|(a, b)| a != b) {
                // A mapping has keys and a list has indexes.
                Some(
                    (Segment::Key(_), Segment::Index(_)) | (Segment::Index(_), Segment::Key(_)),
                ) => true,
                Some(_) => false,
                None if way.len() < other_way.len() => leads_nowhere(own, other_way.get(way.len())),
                None => leads_nowhere(demands, way.get(other_way.len())),
            }
        })
    }

    /// Returns whether the patterns that must be found in a text exclude each other.
    fn patterns_exclude(&mut self, is_name: bool, demands: &[ValueDemand<'r>]) -> bool {
        let Some(examples) = &mut self.examples else { return false };
        let (mut found, mut absent, mut unequal) = (Vec::new(), Vec::new(), Vec::new());
        for demand in demands {
            match demand {
                (Comparison::Finds(pattern), true) => found.push(pattern),
                (Comparison::Finds(pattern), false) => absent.push(pattern),
                (Comparison::Equals(text), false) => unequal.push(text.as_ref()),
                _ => {}
            }
        }
        let alone = found.len() + absent.len() + unequal.len() < 2;
        if found.is_empty() || alone || !(is_name || plain::suffices(&found, &absent, &unequal)) {
            return false;
        }
        // A certname has at least one character.
        let passes = |(comparison, wanted): &ValueDemand<'_>| {
            holds(comparison, Actual::Text("")) != Ok(!*wanted)
        };
        if !is_name && demands.iter().all(passes) {
            return false;
        }
        let found_key = found.iter().map(|it| (it.as_str(), 0));
        let absent_key = absent.iter().map(|it| (it.as_str(), 1));
        let unequal_key = unequal.iter().map(|it| (*it, 2));
        let mut key: Vec<(&'r str, u8)> = found_key.chain(absent_key).chain(unequal_key).collect();
        key.sort_unstable();
        *self
            .known
            .entry(key)
            .or_insert_with(|| examples.find(&found, &absent, &unequal) == Example::Nothing)
    }
}

impl<'r> SearchBranch<'r> {
    fn of(&self, variable: PathNumber) -> &[ValueDemand<'r>] {
        self.demands.get(&variable).map_or(&[], SmallVec::as_slice)
    }

    /// Takes some steps, if as many are left.
    fn step(&mut self, steps: usize) -> bool {
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(0);
        left.is_some()
    }

    fn undo(&mut self, mark: usize) {
        for variable in self.trail.split_off(mark) {
            if let Some(demands) = self.demands.get_mut(&variable) {
                demands.pop();
            }
        }
    }
}

/// Returns whether a value that is as wanted has nothing at the next segment.
fn leads_nowhere(demands: &[ValueDemand<'_>], next: Option<&Segment>) -> bool {
    demands.iter().any(|demand| match demand {
        (Comparison::Contains(_), true) => matches!(next, Some(Segment::Key(_))),
        (_, wanted) => *wanted && next.is_some(),
    })
}

/// Returns whether a path leads to the certname.
fn is_name(path: &Path) -> bool {
    match path {
        Path::Name => true,
        Path::Bare(_) => false,
        Path::Segments(segments) => match segments.as_ref() {
            [Segment::Key(root)] => root.as_ref() == "name",
            [Segment::Key(root), Segment::Key(field)] => {
                root.as_ref() == "trusted" && field.as_ref() == "certname"
            }
            _ => false,
        },
    }
}

/// Returns whether a condition holds for every node of a name, or for none; `None` if that depends
/// on more than the name.
pub fn decide_by_name(condition: &Condition, name: &str) -> Option<bool> {
    let (terms, decisive) = match condition {
        Condition::And(terms) => (terms, false),
        Condition::Or(terms) => (terms, true),
        Condition::Not(inner) => return decide_by_name(inner, name).map(|it| !it),
        Condition::Test(test) if is_name(&test.path) => {
            return holds(&test.comparison, Actual::Text(name)).ok();
        }
        Condition::Test(_) => return None,
    };
    let mut decided = Some(!decisive);
    for term in terms {
        match decide_by_name(term, name) {
            Some(holds) if holds == decisive => return Some(decisive),
            Some(_) => {}
            None => decided = None,
        }
    }
    decided
}
