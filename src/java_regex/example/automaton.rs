//! The automaton of one pattern over the letters that examples are made of.

use hashbrown::HashMap;
use regex_automata::dfa::dense::{self, DFA};
use regex_automata::dfa::{Automaton as _, StartKind};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::util::syntax;
use regex_automata::{Anchored, MatchKind};

use super::ends::{ALPHABET, Ends, LONGEST};
use crate::java_regex::{Pattern, parse, translate};

/// The most bytes of one automaton.
const SIZE: usize = 1 << 20;

/// An automaton that knows of each state what can still come. Its first state is number 0.
#[derive(Debug)]
pub(super) struct Automaton {
    /// The class of each letter: those of one class lead to the same state from every state.
    classes: Vec<u8>,
    /// How many classes there are.
    width: usize,
    /// The state behind each state and class.
    next: Vec<u32>,
    states: Vec<AutomatonState>,
    ends: Ends,
}

#[derive(Clone, Copy, Debug, Default)]
struct AutomatonState {
    /// Whether the pattern is found in the texts that end here.
    accepts: bool,
    /// Whether some text from here ends where it is found.
    can_accept: bool,
    /// Whether some text from here ends where it is not found.
    can_refuse: bool,
}

impl Automaton {
    pub(super) fn states(&self) -> usize {
        self.states.len()
    }

    pub(super) fn class(&self, letter: u8) -> u64 {
        u64::from(self.classes.get(usize::from(letter)).copied().unwrap_or_default())
    }

    pub(super) fn next(&self, state: u64, letter: u8) -> u64 {
        let class = self.classes.get(usize::from(letter)).copied().unwrap_or_default();
        let at = usize::try_from(state).unwrap_or(usize::MAX).saturating_mul(self.width);
        u64::from(self.next.get(at + usize::from(class)).copied().unwrap_or_default())
    }

    pub(super) fn accepts(&self, state: u64) -> bool {
        self.state(state).accepts
    }

    /// Returns whether some text from here is as wanted.
    pub(super) fn can(&self, state: u64, wanted: bool) -> bool {
        let state = self.state(state);
        if wanted { state.can_accept } else { state.can_refuse }
    }

    /// Returns how all texts begin and end in which the pattern is found.
    pub(super) fn ends(&self) -> &Ends {
        &self.ends
    }

    /// Follows the states from which one letter alone leads on.
    fn beginning(&self) -> Vec<u8> {
        let mut beginning = Vec::new();
        let mut state = 0;
        while beginning.len() < LONGEST && !self.accepts(state) {
            let next = |letter| self.next(state, letter);
            let Some(letter) = only(letters().filter(|it| self.can(next(*it), true))) else {
                break;
            };
            beginning.extend(ALPHABET.get(usize::from(letter)));
            state = next(letter);
        }
        beginning
    }

    /// Follows the states in which a text can end back to those before them, as long as one letter
    /// alone leads from the ones to the others. Every state is one that some text leads to.
    fn ending(&self) -> Vec<u8> {
        let mut ending = Vec::new();
        let mut behind: Vec<bool> = self.states.iter().map(|it| it.accepts).collect();
        // Before the first letter nothing more can stand.
        while ending.len() < LONGEST && behind.first() == Some(&false) {
            let leads = |from: usize, letter| {
                let to = usize::try_from(self.next(from as u64, letter)).unwrap_or(usize::MAX);
                behind.get(to) == Some(&true)
            };
            let leads_from_any = |it: &u8| (0..self.states.len()).any(|from| leads(from, *it));
            let Some(letter) = only(letters().filter(leads_from_any)) else { break };
            ending.extend(ALPHABET.get(usize::from(letter)));
            behind = (0..self.states.len()).map(|from| leads(from, letter)).collect();
        }
        ending.reverse();
        ending
    }

    fn state(&self, state: u64) -> AutomatonState {
        let at = usize::try_from(state).unwrap_or(usize::MAX);
        self.states.get(at).copied().unwrap_or_default()
    }
}

/// Builds the automaton of all texts in which a pattern is found.
pub(super) fn build(pattern: &Pattern) -> Option<Automaton> {
    let dense = dense(pattern)?;
    let first = dense.start_state(&start::Config::new().anchored(Anchored::Yes)).ok()?;
    let mut numbers: HashMap<StateID, u32> = HashMap::from([(first, 0)]);
    let mut order = vec![first];
    let mut rows: Vec<Vec<u32>> = Vec::new();
    let mut at = 0;
    while let Some(state) = order.get(at).copied() {
        let mut row = Vec::with_capacity(ALPHABET.len());
        for letter in ALPHABET {
            let next = dense.next_state(state, *letter);
            let new = u32::try_from(order.len()).ok()?;
            let number = *numbers.entry(next).or_insert(new);
            if number == new {
                order.push(next);
            }
            row.push(number);
        }
        rows.push(row);
        at += 1;
    }
    let accepts: Vec<bool> =
        order.iter().map(|it| dense.is_match_state(dense.next_eoi_state(*it))).collect();
    let (classes, letters) = classes(&rows);
    let width = letters.len();
    let next: Vec<u32> = rows
        .iter()
        .flat_map(|row| letters.iter().filter_map(|letter| row.get(*letter).copied()))
        .collect();
    let can_accept = can_reach(&next, width, |state| accepts.get(state) == Some(&true));
    let can_refuse = can_reach(&next, width, |state| accepts.get(state) == Some(&false));
    let states = accepts
        .into_iter()
        .zip(can_accept.into_iter().zip(can_refuse))
        .map(|(accepts, (can_accept, can_refuse))| AutomatonState {
            accepts,
            can_accept,
            can_refuse,
        })
        .collect();
    let mut automaton = Automaton { classes, width, next, states, ends: Ends::default() };
    automaton.ends = Ends { beginning: automaton.beginning(), ending: automaton.ending() };
    Some(automaton)
}

/// Returns the places in the alphabet.
fn letters() -> impl Iterator<Item = u8> {
    (0..).take(ALPHABET.len())
}

/// Returns what comes, if it is one thing alone.
fn only(mut letters: impl Iterator<Item = u8>) -> Option<u8> {
    let only = letters.next()?;
    letters.next().is_none().then_some(only)
}

fn dense(pattern: &Pattern) -> Option<DFA<Vec<u32>>> {
    let parsed = parse::parse(pattern.as_str()).ok()?;
    let (text, _) = translate::translate(&parsed.ast)?;
    let whole = format!(r"\A(?s-u:.)*?(?:{text})(?s-u:.)*\z");
    dense::Builder::new()
        .configure(
            dense::Config::new()
                .start_kind(StartKind::Anchored)
                .match_kind(MatchKind::All)
                // It is walked a letter at a time.
                .accelerate(false)
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

/// Returns the class of each letter, and the first letter of each class.
fn classes(rows: &[Vec<u32>]) -> (Vec<u8>, Vec<usize>) {
    let mut known: HashMap<Vec<u32>, u8> = HashMap::new();
    let mut letters = Vec::new();
    let mut classes = Vec::with_capacity(ALPHABET.len());
    for letter in 0..ALPHABET.len() {
        let column: Vec<u32> = rows.iter().filter_map(|row| row.get(letter).copied()).collect();
        let new = u8::try_from(letters.len()).unwrap_or(u8::MAX);
        let class = *known.entry(column).or_insert(new);
        if class == new {
            letters.push(letter);
        }
        classes.push(class);
    }
    (classes, letters)
}

/// Returns of each state whether one of some can be reached from it.
fn can_reach(next: &[u32], width: usize, is_wanted: impl Fn(usize) -> bool) -> Vec<bool> {
    let count = next.len() / width.max(1);
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (at, to) in next.iter().enumerate() {
        if let Some(before) = before.get_mut(*to as usize) {
            before.push(at / width);
        }
    }
    let mut can: Vec<bool> = (0..count).map(&is_wanted).collect();
    let mut open: Vec<usize> = (0..count).filter(|state| is_wanted(*state)).collect();
    while let Some(state) = open.pop() {
        for from in before.get(state).into_iter().flatten() {
            if let Some(can) = can.get_mut(*from).filter(|can| !**can) {
                *can = true;
                open.push(*from);
            }
        }
    }
    can
}
