//! Texts in which some patterns are found and others are not.
//!
//! Every pattern becomes a finite automaton over whole texts; a walk through all of them at once,
//! shortest texts first, finds a text or proves that there is none. Only texts of printable ASCII
//! on one line are looked for: on those the translated pattern means what the original does.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use regex_automata::dfa::dense::{self, DFA};
use regex_automata::dfa::{Automaton as _, StartKind};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::util::syntax;
use regex_automata::{Anchored, MatchKind};

use super::{Pattern, parse, translate};

/// The most bytes of one automaton.
const SIZE: usize = 1 << 20;

/// How many combinations of states a walk visits.
const VISITS: usize = 20_000;

/// What people would write first comes first.
const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789-._ABCDEFGHIJKLMNOPQRSTUVWXYZ/:@+, !\"#$%&'()*;<=>?[\\]^`{|}~";

/// Whether there is a text as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Example {
    /// There is: this one.
    Text(String),
    /// There is none.
    Nothing,
    /// Nobody can tell with reasonable effort.
    Unknown,
}

/// Finds texts, keeping the automata of patterns.
#[derive(Debug, Default)]
pub struct Examples {
    automata: HashMap<Box<str>, Option<Arc<Automaton>>>,
}

type Automaton = DFA<Vec<u32>>;

impl Examples {
    /// Finds a text in which all of some patterns are found, and none of others, and that is none
    /// of some texts.
    pub fn find(&mut self, found: &[&Pattern], absent: &[&Pattern], not: &[&str]) -> Example {
        let mut walked: Vec<(Arc<Automaton>, bool)> = Vec::new();
        for (patterns, wanted) in [(found, true), (absent, false)] {
            for pattern in patterns {
                match self.automaton(pattern) {
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
        walk(&walked, |text| !not.contains(&text))
    }

    fn automaton(&mut self, pattern: &Pattern) -> Option<Arc<Automaton>> {
        let known = self.automata.entry(pattern.as_str().into());
        known.or_insert_with(|| build(pattern).map(Arc::new)).clone()
    }
}

/// Builds the automaton of all texts in which a pattern is found.
fn build(pattern: &Pattern) -> Option<Automaton> {
    let parsed = parse::parse(pattern.as_str()).ok()?;
    let (text, _) = translate::translate(&parsed.ast)?;
    let whole = format!(r"\A(?s-u:.)*?(?:{text})(?s-u:.)*\z");
    dense::Builder::new()
        .configure(
            dense::Config::new()
                .start_kind(StartKind::Anchored)
                .match_kind(MatchKind::All)
                .dfa_size_limit(Some(SIZE))
                .determinize_size_limit(Some(4 * SIZE)),
        )
        .syntax(syntax::Config::new().utf8(false).nest_limit(2000))
        .thompson(
            regex_automata::nfa::thompson::Config::new().utf8(false).nfa_size_limit(Some(SIZE)),
        )
        .build(&whole)
        .ok()
}

/// A combination of states: how it was come to.
struct Visited {
    states: Vec<StateID>,
    from: usize,
    byte: u8,
}

fn walk(automata: &[(Arc<Automaton>, bool)], wanted: impl Fn(&str) -> bool) -> Example {
    let start: Option<Vec<StateID>> = automata
        .iter()
        .map(|(it, _)| it.start_state(&start::Config::new().anchored(Anchored::Yes)).ok())
        .collect();
    let Some(start) = start else { return Example::Unknown };
    let mut known: HashSet<Vec<StateID>> = HashSet::from([start.clone()]);
    let mut visited = vec![Visited { states: start, from: 0, byte: 0 }];
    let mut at = 0;
    while let Some(states) = visited.get(at).map(|it| it.states.clone()) {
        for byte in ALPHABET {
            let next: Vec<StateID> = automata
                .iter()
                .zip(&states)
                .map(|((automaton, _), state)| automaton.next_state(*state, *byte))
                .collect();
            let hopeless = automata
                .iter()
                .zip(&next)
                .any(|((automaton, wanted), state)| *wanted && automaton.is_dead_state(*state));
            if hopeless || known.contains(&next) {
                continue;
            }
            known.insert(next.clone());
            visited.push(Visited { states: next, from: at, byte: *byte });
            let last = visited.len() - 1;
            if accepts(automata, &visited, last) {
                let text = text_of(&visited, last);
                if wanted(&text) {
                    return Example::Text(text);
                }
                // The one text to this combination is not allowed; a longer way would have to lead here.
                known.remove(&visited.get(last).map(|it| it.states.clone()).unwrap_or_default());
            }
            if visited.len() > VISITS {
                return Example::Unknown;
            }
        }
        at += 1;
    }
    Example::Nothing
}

fn accepts(automata: &[(Arc<Automaton>, bool)], visited: &[Visited], at: usize) -> bool {
    let Some(here) = visited.get(at) else { return false };
    automata.iter().zip(&here.states).all(|((automaton, wanted), state)| {
        automaton.is_match_state(automaton.next_eoi_state(*state)) == *wanted
    })
}

fn text_of(visited: &[Visited], mut at: usize) -> String {
    let mut bytes = Vec::new();
    while let Some(here) = visited.get(at).filter(|_| at > 0) {
        bytes.push(char::from(here.byte));
        at = here.from;
    }
    bytes.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_text_is_found_or_proven_not_to_be() {
        let text = |text: &str| Example::Text(text.to_owned());
        for (found, absent, not, expected) in [
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
            (&[r"^\d{3}$", "5"], &["^5", "5$"], &[], text("050")),
            (&[r"\bweb\b", "^x"], &[], &[], text("x-web")),
        ] {
            assert_eq!(find(found, absent, not), expected, "{found:?} {absent:?} {not:?}");
        }
    }
}
