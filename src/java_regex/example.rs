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

use automaton::Automaton;
use ends::ALPHABET;
pub use ends::Ends;

/// How many combinations of states a walk visits.
const VISITS: usize = 20_000;

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

/// The automaton of a pattern; `None` if it has none.
type BuiltAutomaton = OnceLock<Option<Arc<Automaton>>>;

impl Automata {
    /// Returns the automaton of a pattern; `None` if it has none.
    fn of(&self, pattern: &Pattern) -> Option<Arc<Automaton>> {
        let built = self.built(pattern.as_str());
        // A thread that asks for one which another thread builds waits for it. Building starts nothing on other
        // threads, so none waits for itself.
        built.get_or_init(|| automaton::build(pattern).map(Arc::new)).clone()
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
    steps: u64,
}

impl Examples {
    /// Finds texts with automata that others use too.
    pub fn sharing(automata: &Arc<Automata>) -> Self {
        Self { automata: Arc::clone(automata), steps: 0 }
    }

    /// Returns how many transitions all walks took so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Finds a text in which all of some patterns are found, and none of others, and that is none
    /// of some texts.
    pub fn find(&mut self, found: &[&Pattern], absent: &[&Pattern], not: &[&str]) -> Example {
        let mut walked: Vec<(Arc<Automaton>, bool)> = Vec::new();
        for (patterns, wanted) in [(found, true), (absent, false)] {
            for pattern in patterns {
                match self.automata.of(pattern) {
                    Some(automaton) => walked.push((automaton, wanted)),
                    None => return Example::Unknown,
                }
            }
        }
        if walked.is_empty() {
            // One letter more than there are texts to avoid is another text than each of them.
            let longest = not.iter().map(|it| it.len()).max().unwrap_or_default();
            return Example::Text("a".repeat(longest + 1));
        }
        let found = walked.get(..found.len()).unwrap_or_default();
        self.steps += 1;
        let fit = |a: &Automaton, b: &Automaton| a.ends().fit(b.ends());
        if found.windows(2).any(|pair| matches!(pair, [(a, _), (b, _)] if !fit(a, b))) {
            return Example::Nothing;
        }
        let mut walk = ProductWalk::new(&walked, not);
        let example = walk.run();
        self.steps += walk.steps;
        // People see more in a text of some letters.
        match example {
            Example::Text(text) => Example::Text(text),
            _ if walk.accepts(0) && !not.contains(&"") => Example::Text(String::new()),
            other => other,
        }
    }

    /// Builds the automata of patterns on all processors.
    pub fn prepare(&self, patterns: &[&Pattern]) {
        patterns.par_iter().for_each(|it| drop(self.automata.of(it)));
    }

    /// Returns how all texts begin and end in which a pattern is found.
    pub fn ends(&self, pattern: &Pattern) -> Option<Ends> {
        self.automata.of(pattern).map(|it| it.ends().clone())
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
    not: &'w [&'w str],
    /// The places in the alphabet of the letters that are tried.
    letters: Vec<u8>,
    steps: u64,
}

impl<'w> ProductWalk<'w> {
    fn new(automata: &'w [(Arc<Automaton>, bool)], not: &'w [&'w str]) -> Self {
        let letters = (0..).take(ALPHABET.len()).collect();
        Self { automata, not, letters, steps: 0 }
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

    /// Looks for a text of at least one letter.
    fn run(&mut self) -> Example {
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
            for place in 0..self.letters.len() {
                self.steps += 1;
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
        let example = Examples::default().find(
            &found.iter().collect::<Vec<_>>(),
            &absent.iter().collect::<Vec<_>>(),
            not,
        );
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
        other.prepare(&[&web, &unknown, &parse("^web")]);
        let made = automata.of(&web).unwrap();
        assert_eq!(one.find(&[&web], &[], &[]), Example::Text("web".to_owned()));
        assert_eq!(one.find(&[&unknown], &[], &[]), Example::Unknown);
        assert!(Arc::ptr_eq(&made, &automata.of(&parse("^web")).unwrap()));
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
