//! Texts in which some patterns are found and others are not.
//!
//! Every pattern becomes a finite automaton over whole texts; a walk through all of them at once,
//! shortest texts first, finds a text or proves that there is none. Only texts of printable ASCII
//! on one line are looked for: on those the translated pattern means what the original does.

mod automaton;
mod ends;
mod letters;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hashbrown::{HashMap, HashSet};
use rayon::prelude::*;

use super::Pattern;

use automaton::{Automaton, NoAutomaton};
use ends::ALPHABET;
pub use ends::Ends;

/// How many combinations of states a walk visits.
const VISITS: usize = 20_000;

/// How many patterns are walked through at once: the numbers of more combinations than of so many that have three
/// states each do not fit into a word.
pub const MOST_PATTERNS: usize = 40;

/// How many automata are built by all processors before their steps are counted.
const BUILT_AT_ONCE: usize = 256;

/// How many steps of a walk a pattern takes to be made an automaton, beside those for its size.
const BUILDING: u64 = 1_000;

/// How many steps it takes for each state and class of letters.
const BUILDING_CELL: u64 = 16;

/// How many steps it takes to find that an automaton would be too large.
const BUILDING_TOO_LARGE: u64 = 500_000;

/// Whether there is a text as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Example {
    /// There is: this one.
    Text(String),
    /// There is none.
    Nothing,
    /// It cannot be decided with reasonable effort.
    Unknown,
}

/// The automata of patterns, by their text: several searches share them, since building them takes most of their time.
#[derive(Debug, Default)]
pub struct Automata(Mutex<HashMap<Box<str>, Arc<BuiltAutomaton>>>);

/// The automaton of a pattern, or why it has none.
type BuiltAutomaton = OnceLock<Result<Arc<Automaton>, NoAutomaton>>;

impl Automata {
    /// Returns the automaton of a pattern, if it has one, and how many steps it takes to build it.
    fn of(&self, pattern: &Pattern) -> (Option<Arc<Automaton>>, u64) {
        let built = self.built(pattern.as_str());
        // A thread that asks for one which another thread builds waits for it. Building starts nothing on other
        // threads, so none waits for itself.
        match built.get_or_init(|| automaton::build(pattern).map(Arc::new)) {
            Ok(automaton) => {
                let steps = BUILDING + BUILDING_CELL * automaton.cells() as u64;
                (Some(Arc::clone(automaton)), steps)
            }
            Err(NoAutomaton::Untranslated) => (None, BUILDING),
            Err(NoAutomaton::TooLarge) => (None, BUILDING_TOO_LARGE),
        }
    }

    fn built(&self, pattern: &str) -> Arc<BuiltAutomaton> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(pattern) {
            return Arc::clone(known);
        }
        let new = Arc::default();
        all.insert(pattern.into(), Arc::clone(&new));
        new
    }

    /// Returns how many patterns were asked for.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Finds texts.
#[derive(Debug, Default)]
pub struct Examples {
    automata: Arc<Automata>,
    /// The patterns whose building is among the steps.
    counted: HashSet<Box<str>>,
    steps: u64,
}

/// What is looked for: a text in which all of some patterns are found, and none of others, and that is none of some
/// texts.
#[derive(Clone, Copy, Debug, Default)]
pub struct WantedText<'w> {
    /// The patterns that are found in it.
    pub found: &'w [&'w Pattern],
    /// Those that are not.
    pub absent: &'w [&'w Pattern],
    /// The texts that it is not.
    pub not: &'w [&'w str],
}

impl WantedText<'_> {
    fn patterns(&self) -> impl Iterator<Item = (&Pattern, bool)> {
        let found = self.found.iter().map(|it| (*it, true));
        found.chain(self.absent.iter().map(|it| (*it, false)))
    }
}

impl Examples {
    /// Finds texts with automata that others use too.
    pub fn sharing(automata: &Arc<Automata>) -> Self {
        Self { automata: Arc::clone(automata), ..Self::default() }
    }

    /// Returns how many steps were taken so far: the transitions of all walks, and those for building automata.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Finds a text in at most so many steps more, of which those for building an automaton count once.
    pub fn find(&mut self, wanted: WantedText<'_>, steps: u64) -> Example {
        let before = self.steps;
        for (pattern, _) in wanted.patterns().take(MOST_PATTERNS) {
            self.count(pattern);
            if self.steps - before > steps {
                return Example::Unknown;
            }
        }
        let (example, taken) = self.walk(wanted, steps - (self.steps - before));
        self.steps += taken;
        example
    }

    /// Finds a text in at most so many steps, whatever was found before; returns how many it took, those for building
    /// automata among them.
    pub fn find_with_costs(&self, wanted: WantedText<'_>, steps: u64) -> (Example, u64) {
        let mut building = 0;
        for (pattern, _) in wanted.patterns().take(MOST_PATTERNS) {
            building += self.automata.of(pattern).1;
            if building > steps {
                return (Example::Unknown, steps);
            }
        }
        let (example, taken) = self.walk(wanted, steps - building);
        (example, building + taken)
    }

    fn walk(&self, wanted: WantedText<'_>, steps: u64) -> (Example, u64) {
        if wanted.found.len() + wanted.absent.len() > MOST_PATTERNS {
            return (Example::Unknown, 1);
        }
        let mut walked: Vec<(Arc<Automaton>, bool)> = Vec::new();
        for (pattern, is_found) in wanted.patterns() {
            match self.automata.of(pattern).0 {
                Some(automaton) => walked.push((automaton, is_found)),
                None => return (Example::Unknown, 1),
            }
        }
        if walked.is_empty() {
            // One letter more than there are texts to avoid is another text than each of them.
            let longest = wanted.not.iter().map(|it| it.len()).max().unwrap_or_default();
            return (Example::Text("a".repeat(longest + 1)), 1);
        }
        let found = walked.get(..wanted.found.len()).unwrap_or_default();
        let fit = |a: &Automaton, b: &Automaton| a.ends().fit(b.ends());
        if found.windows(2).any(|pair| matches!(pair, [(a, _), (b, _)] if !fit(a, b))) {
            return (Example::Nothing, 1);
        }
        let mut walk = ProductWalk::new(&walked, wanted.not);
        let example = walk.run(steps);
        // People see more in a text of some letters.
        let example = match example {
            Example::Text(text) => Example::Text(text),
            _ if walk.accepts(0) && !walk.not.contains("") => Example::Text(String::new()),
            other => other,
        };
        (example, walk.steps)
    }

    /// Counts the steps for building the automaton of a pattern, once.
    fn count(&mut self, pattern: &Pattern) {
        if !self.counted.contains(pattern.as_str()) {
            self.counted.insert(pattern.as_str().into());
            self.steps += self.automata.of(pattern).1;
        }
    }

    /// Builds the automata of patterns on all processors.
    /// Builds them until about so many steps were taken.
    pub fn prepare(&self, patterns: &[&Pattern], steps: u64) {
        let mut taken = 0;
        for some in patterns.chunks(BUILT_AT_ONCE) {
            if taken > steps {
                return;
            }
            taken += some.par_iter().map(|it| self.automata.of(it).1).sum::<u64>();
        }
    }

    /// Returns how all texts begin and end in which a pattern is found.
    pub fn ends(&mut self, pattern: &Pattern) -> Option<Ends> {
        self.count(pattern);
        self.automata.of(pattern).0.map(|it| it.ends().clone())
    }
}

/// A combination of states: how it was come to.
struct Visited {
    states: u64,
    from: usize,
    letter: u8,
}

/// A walk through automata at once, breadth first.
struct ProductWalk<'w> {
    automata: &'w [(Arc<Automaton>, bool)],
    not: HashSet<&'w str>,
    /// The places in the alphabet of the letters that are tried.
    letters: Vec<u8>,
    steps: u64,
}

impl<'w> ProductWalk<'w> {
    fn new(automata: &'w [(Arc<Automaton>, bool)], not: &'w [&'w str]) -> Self {
        let letters = (0..).take(ALPHABET.len()).collect();
        Self { automata, not: not.iter().copied().collect(), letters, steps: not.len() as u64 }
    }

    /// Keeps one letter of those that lead to the same states.
    fn join_letters(&mut self) {
        // They differ where some texts are not allowed; and the classes of more automata than
        // this do not fit into one number.
        if self.not.iter().any(|it| !it.is_empty()) || self.automata.len() > 9 {
            return;
        }
        let mut known: HashSet<u64> = HashSet::new();
        let automata = self.automata;
        self.letters.retain(|letter| {
            known.insert(automata.iter().fold(0_u64, |classes, (automaton, _)| {
                classes.wrapping_mul(ALPHABET.len() as u64).wrapping_add(automaton.class(*letter))
            }))
        });
    }

    /// Looks for a text of at least one letter, in about so many steps.
    fn run(&mut self, steps: u64) -> Example {
        // Two automata are walked in about the time of one.
        let at_once = (self.automata.len() as u64).div_ceil(2);
        let combinations = self.automata.iter().try_fold(1_u64, |product, (automaton, _)| {
            product.checked_mul(automaton.states() as u64)
        });
        if combinations.is_none() {
            return Example::Unknown;
        }
        // The first state of each is its number 0.
        let mut visited = vec![Visited { states: 0, from: 0, letter: 0 }];
        if self.automata.iter().any(|(automaton, wanted)| !automaton.can(0, *wanted)) {
            return Example::Nothing;
        }
        let mut known: HashSet<u64> = HashSet::from([0]);
        let mut at = 0;
        while let Some(states) = visited.get(at).map(|it| it.states) {
            // Most walks end with the first letter: only the others are worth it.
            if at == 1 {
                self.join_letters();
            }
            if self.steps > steps {
                return Example::Unknown;
            }
            for place in 0..self.letters.len() {
                self.steps += at_once;
                let Some(letter) = self.letters.get(place).copied() else { break };
                let Some(next) = self.next(states, letter) else { continue };
                if !known.insert(next) {
                    continue;
                }
                visited.push(Visited { states: next, from: at, letter });
                if self.accepts(next) {
                    let text = text_of(&visited);
                    if !self.not.contains(&text.as_str()) {
                        return Example::Text(text);
                    }
                    // This text is not allowed; another may lead to the same states.
                    known.remove(&next);
                }
                if visited.len() > VISITS {
                    return Example::Unknown;
                }
            }
            at += 1;
        }
        Example::Nothing
    }

    /// Returns the states behind a letter, if a text can still be as wanted.
    fn next(&self, states: u64, letter: u8) -> Option<u64> {
        let mut rest = states;
        let mut next = 0;
        let mut weight = 1;
        for (automaton, wanted) in self.automata {
            let count = automaton.states() as u64;
            let state = automaton.next(rest % count, letter);
            if !automaton.can(state, *wanted) {
                return None;
            }
            next += state * weight;
            rest /= count;
            weight *= count;
        }
        Some(next)
    }

    fn accepts(&self, states: u64) -> bool {
        let mut rest = states;
        self.automata.iter().all(|(automaton, wanted)| {
            let count = automaton.states() as u64;
            let state = rest % count;
            rest /= count;
            automaton.accepts(state) == *wanted
        })
    }
}

/// Returns the text that leads to the last combination.
fn text_of(visited: &[Visited]) -> String {
    let mut letters = Vec::new();
    let mut at = visited.len().saturating_sub(1);
    while let Some(here) = visited.get(at).filter(|_| at > 0) {
        letters.extend(ALPHABET.get(usize::from(here.letter)).copied().map(char::from));
        at = here.from;
    }
    letters.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::each_row;

    fn find(found: &[&str], absent: &[&str], not: &[&str]) -> Example {
        let parse = |texts: &[&str]| -> Vec<Pattern> {
            texts.iter().map(|it| Pattern::parse(it).unwrap()).collect()
        };
        let (found, absent) = (parse(found), parse(absent));
        let (found_all, absent_all): (Vec<_>, Vec<_>) =
            (found.iter().collect(), absent.iter().collect());
        let wanted = WantedText { found: &found_all, absent: &absent_all, not };
        let example = Examples::default().find(wanted, u64::MAX);
        if let Example::Text(text) = &example {
            assert!(found.iter().all(|it| it.is_found_in(text).unwrap()), "{text}");
            assert!(!absent.iter().any(|it| it.is_found_in(text).unwrap()), "{text}");
        }
        example
    }

    #[test]
    fn searches_share_automata() {
        let automata = Arc::default();
        let (mut one, other) = (Examples::sharing(&automata), Examples::sharing(&automata));
        let parse = |text: &str| Pattern::parse(text).unwrap();
        let (web, unknown) = (parse("^web"), parse("a(?=b)"));
        other.prepare(&[&web, &unknown, &parse("^web")], u64::MAX);
        let made = automata.of(&web).0.unwrap();
        let mut find = |pattern: &Pattern| {
            one.find(WantedText { found: &[pattern], ..WantedText::default() }, u64::MAX)
        };
        assert_eq!(find(&web), Example::Text("web".to_owned()));
        assert_eq!(find(&unknown), Example::Unknown);
        assert!(Arc::ptr_eq(&made, &automata.of(&parse("^web")).0.unwrap()));
        assert_eq!(automata.count(), 2);
    }

    #[test]
    fn a_text_is_found_or_proven_not_to_be() {
        let text = |text: &str| Example::Text(text.to_owned());
        let rows = [
            (&["^web"][..], &[][..], &[][..], text("web")),
            (&["^web", r"\.com$"], &[], &[], text("web.com")),
            (&["^web", "^db"], &[], &[], Example::Nothing),
            (&["^web", r"^[a-z]+\d$"], &["web0"], &[], text("web1")),
            (&["^(web|db)$"], &["web"], &[], text("db")),
            (&["^a$"], &["a"], &[], Example::Nothing),
            (&["^a?b$"], &[], &["b"], text("ab")),
            (&["^b$"], &[], &["b"], Example::Nothing),
            (&["^x"], &[], &["x"], text("xa")),
            (&[], &["a"], &[], text("b")),
            (&[], &[], &["b"], text("aa")),
            (&["a(?=b)"], &[], &[], Example::Unknown),
            (&["^$"], &[], &[], text("")),
            (&["^$"], &[], &[""], Example::Nothing),
            (&["^$", "a"], &[], &[], Example::Nothing),
            (&["^a*$"], &[], &["", "a"], text("aa")),
            (&["^[ab]$"], &[], &["a"], text("b")),
            (&[], &["."], &[], text("")),
            (&[], &[".*"], &[], Example::Nothing),
            (&[r"^\d{3}$", "5"], &["^5", "5$"], &[], text("050")),
            (&[r"\bweb\b", "^x"], &[], &[], text("x-web")),
        ];
        each_row(rows, |(found, absent, not, expected)| {
            assert_eq!(find(found, absent, not), expected, "{found:?} {absent:?} {not:?}");
        });
    }
}
