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
use super::place_tree::{HeldKind, HeldPlaces, PlaceNumber, PlaceTree};
use crate::java_regex::{Automata, Example, Examples, MOST_PATTERNS, Pattern, WantedText};
use crate::model::{Comparison, Condition, Path, Segment};
use value::ValueDemand;

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
    Value(PlaceNumber, &'r Comparison, bool),
}

/// Proves that conditions exclude each other.
#[derive(Debug)]
pub struct Prover<'r> {
    places: PlaceTree,
    /// The variables of paths that were seen, by their address: rules share most, and outlive this.
    seen: HashMap<usize, Option<PlaceNumber>>,
    branch: SearchBranch<'r>,
    examples: Option<Examples>,
    /// What walks found out about patterns and texts.
    known: HashMap<Vec<(&'r str, u8)>, KnownWalk>,
    /// How many patterns and texts these have together.
    remembered: usize,
}

/// A walk that looked for a text of printable ASCII as patterns and texts want it.
#[derive(Clone, Copy, Debug)]
struct KnownWalk {
    finds_nothing: bool,
    /// How many steps it took; all that were allowed if it was cut.
    taken: u64,
    allowed: u64,
}

/// What is claimed of each variable in one branch of the search.
#[derive(Debug, Default)]
struct SearchBranch<'r> {
    /// By variable.
    demands: Vec<SmallVec<[ValueDemand<'r>; 2]>>,
    held: HeldPlaces,
    trail: Vec<PlaceNumber>,
    steps: usize,
}

/// Whether a branch of the search is refuted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BranchOutcome {
    Refuted,
    Open,
}

/// How many steps of a walk through automata are one of a proof.
const WALKED: u64 = 64;

/// How many patterns and texts the walks that are remembered have together at most.
const REMEMBERED: usize = 500_000;

/// How many segments of a path one step covers.
const NEAR: usize = 8;

/// The variable of the certname.
const NAME: PlaceNumber = 0;

impl<'r> Prover<'r> {
    /// Creates a prover that compares texts, and tries patterns on texts.
    pub fn quick() -> Self {
        let mut places = PlaceTree::default();
        // The first place has the number of the certname.
        places.number(&[Segment::Key("name".into())]);
        Self {
            places,
            seen: HashMap::new(),
            branch: SearchBranch::default(),
            examples: None,
            known: HashMap::new(),
            remembered: 0,
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
    fn variable(&mut self, path: &'r Path) -> Option<PlaceNumber> {
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

    fn variable_at(&mut self, segments: &[Segment]) -> Option<PlaceNumber> {
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
        Some(self.places.number(&way))
    }

    /// Returns whether no node meets all claims; what takes more than so many steps is not proven.
    pub fn excludes(&mut self, claims: &[&Claim<'r>], steps: usize) -> bool {
        let mut branch = std::mem::take(&mut self.branch);
        branch.steps = steps;
        branch.demands.resize_with(self.places.len(), SmallVec::new);
        branch.held.fit(&self.places);
        let outcome = self.search(claims.to_vec(), Vec::new(), &mut branch);
        branch.undo(0, &self.places);
        self.branch = branch;
        outcome == BranchOutcome::Refuted
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
            branch.undo(mark, &self.places);
            if outcome == BranchOutcome::Open {
                return BranchOutcome::Open;
            }
        }
        BranchOutcome::Refuted
    }

    /// Adds what is claimed of a value; refuted if no value is like that, or not beside the others.
    fn add(
        &mut self,
        variable: PlaceNumber,
        demand: ValueDemand<'r>,
        branch: &mut SearchBranch<'r>,
    ) -> BranchOutcome {
        if branch.of(variable).contains(&demand) {
            return BranchOutcome::Open;
        }
        let count = branch.put(variable, demand, &self.places);
        if !branch.step(count + self.places.depth(variable) / NEAR) {
            return BranchOutcome::Open;
        }
        let is_name = variable == NAME;
        let demands = branch.of(variable);
        if value::is_impossible(is_name, demands)
            || (demand.1 && !branch.leaves_room(variable, &self.places))
        {
            return BranchOutcome::Refuted;
        }
        let allowed = branch.steps as u64 * WALKED;
        let (refuted, taken) = self.patterns_exclude(is_name, demands, allowed);
        branch.step(usize::try_from(taken.div_ceil(WALKED)).unwrap_or(usize::MAX));
        if refuted { BranchOutcome::Refuted } else { BranchOutcome::Open }
    }

    /// Returns whether the patterns that must be found in a text exclude each other, and how many steps of a walk, of
    /// those that are allowed, it took to say so.
    fn patterns_exclude(
        &mut self,
        is_name: bool,
        demands: &[ValueDemand<'r>],
        allowed: u64,
    ) -> (bool, u64) {
        if self.examples.is_none() {
            return (false, 0);
        }
        let (mut found, mut absent, mut unequal) = (Vec::new(), Vec::new(), Vec::new());
        for demand in demands {
            match demand {
                (Comparison::Finds(pattern), true) => found.push(pattern),
                (Comparison::Finds(pattern), false) => absent.push(pattern),
                (Comparison::Equals(text), false) => unequal.push(text.as_ref()),
                _ => {}
            }
        }
        let patterns = found.len() + absent.len();
        let is_alone = patterns + unequal.len() < 2;
        if found.is_empty()
            || is_alone
            || patterns > MOST_PATTERNS
            || !(is_name || plain::suffices(&found, &absent, &unequal))
        {
            return (false, 0);
        }
        // A certname has at least one character.
        let passes = |(comparison, wanted): &ValueDemand<'_>| {
            holds(comparison, Actual::Text("")) != Ok(!*wanted)
        };
        if !is_name && demands.iter().all(passes) {
            return (false, 0);
        }
        self.walk(&found, &absent, &unequal, allowed)
    }

    /// Walks through automata, or remembers such a walk: what is found in so many steps does not depend on what was
    /// asked before.
    fn walk(
        &mut self,
        found: &[&'r Pattern],
        absent: &[&'r Pattern],
        not: &[&'r str],
        allowed: u64,
    ) -> (bool, u64) {
        let Some(examples) = &self.examples else { return (false, 0) };
        let found_key = found.iter().map(|it| (it.as_str(), 0));
        let absent_key = absent.iter().map(|it| (it.as_str(), 1));
        let unequal_key = not.iter().map(|it| (*it, 2));
        let mut key: Vec<(&'r str, u8)> = found_key.chain(absent_key).chain(unequal_key).collect();
        key.sort_unstable();
        let known = self.known.get(&key).copied();
        let walk = match known.filter(|it| it.is_whole() || it.allowed >= allowed) {
            Some(known) => known,
            None => {
                let (example, taken) =
                    examples.find_with_costs(WantedText { found, absent, not }, allowed);
                let walk = KnownWalk { finds_nothing: example == Example::Nothing, taken, allowed };
                self.remembered += key.len();
                if self.remembered > REMEMBERED {
                    self.known.clear();
                    self.remembered = key.len();
                }
                self.known.insert(key, walk);
                walk
            }
        };
        if walk.is_whole() && walk.taken < allowed {
            (walk.finds_nothing, walk.taken)
        } else {
            (false, allowed)
        }
    }
}

impl KnownWalk {
    /// Returns whether it ended by itself.
    fn is_whole(self) -> bool {
        self.taken < self.allowed
    }
}

impl<'r> SearchBranch<'r> {
    fn of(&self, variable: PlaceNumber) -> &[ValueDemand<'r>] {
        self.demands.get(variable).map_or(&[], SmallVec::as_slice)
    }

    fn is_held(&self, variable: PlaceNumber) -> bool {
        self.of(variable).iter().any(|(_, wanted)| *wanted)
    }

    /// Puts what is claimed of a value to what is claimed already; returns how much is claimed of it.
    fn put(&mut self, variable: PlaceNumber, demand: ValueDemand<'r>, places: &PlaceTree) -> usize {
        if demand.1 && !self.is_held(variable) {
            self.held.hold(places, variable);
        }
        self.trail.push(variable);
        let Some(demands) = self.demands.get_mut(variable) else { return 0 };
        demands.push(demand);
        demands.len()
    }

    /// Returns whether what must be at a path leaves room for what must be at the others.
    fn leaves_room(&self, variable: PlaceNumber, places: &PlaceTree) -> bool {
        self.held.leave_room(places, variable, |it| held(self.of(it)))
    }

    /// Takes some steps, if as many are left.
    fn step(&mut self, steps: usize) -> bool {
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(0);
        left.is_some()
    }

    fn undo(&mut self, mark: usize, places: &PlaceTree) {
        while self.trail.len() > mark {
            let Some(variable) = self.trail.pop() else { return };
            let last = self.demands.get_mut(variable).and_then(SmallVec::pop);
            if last.is_some_and(|it| it.1) && !self.is_held(variable) {
                self.held.release(places, variable);
            }
        }
    }
}

/// Returns what must be at a place of whose value this is claimed.
fn held(demands: &[ValueDemand<'_>]) -> HeldKind {
    let mut held = HeldKind::Nothing;
    for (comparison, _) in demands.iter().filter(|it| it.1) {
        if !matches!(comparison, Comparison::Contains(_)) {
            return HeldKind::Single;
        }
        held = HeldKind::List;
    }
    held
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
