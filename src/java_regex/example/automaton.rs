//! The automaton of one pattern over the letters that examples are made of.

use hashbrown::HashMap;
use regex_automata::dfa::dense::{self, DFA};
use regex_automata::dfa::{Automaton as _, StartKind};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_automata::util::syntax;
use regex_automata::{Anchored, MatchKind};

use super::ends::{ALPHABET, Ends, LONGEST};
use super::letters::{LetterClass, LetterClasses};
use crate::java_regex::{Pattern, parse, translate};

/// The most bytes of one automaton. One of that size takes about two milliseconds to build.
const SIZE: usize = 1 << 17;

/// Why a pattern has no automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAutomaton {
    /// Automata cannot say what it says.
    Untranslated,
    /// It would have too many states.
    TooLarge,
}

/// An automaton that knows of each state what can still come. Its first state is number 0.
#[derive(Debug)]
pub(super) struct Automaton {
    letters: LetterClasses,
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

    /// Returns how many states behind a state and class there are.
    pub(super) fn cells(&self) -> usize {
        self.next.len()
    }

    pub(super) fn class(&self, letter: u8) -> u64 {
        self.letters.of(letter) as u64
    }

    pub(super) fn next(&self, state: u64, letter: u8) -> u64 {
        let at = usize::try_from(state).unwrap_or(usize::MAX).saturating_mul(self.letters.len());
        u64::from(self.next.get(at + self.letters.of(letter)).copied().unwrap_or_default())
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
            let leads_on = |it: &&LetterClass| self.can(self.next(state, it.first), true);
            let Some(letter) = only(self.letters.iter().filter(leads_on)) else { break };
            beginning.extend(ALPHABET.get(usize::from(letter)));
            state = self.next(state, letter);
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
            let leads_from_any =
                |it: &&LetterClass| (0..self.states.len()).any(|from| leads(from, it.first));
            let Some(letter) = only(self.letters.iter().filter(leads_from_any)) else { break };
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
pub(super) fn build(pattern: &Pattern) -> Result<Automaton, NoAutomaton> {
    let dense = dense(pattern)?;
    // A pattern tells few letters apart, so each state is asked about one of a class.
    let told_apart = LetterClasses::by(|letter, _| dense.byte_classes().get(letter));
    let (rows, accepts) = walk(&dense, &told_apart).ok_or(NoAutomaton::TooLarge)?;
    // Those that only bytes beyond the alphabet tell apart lead to the same states.
    let width = told_apart.len().max(1);
    let column = |class: usize| rows.iter().skip(class).step_by(width).copied().collect();
    let columns: Vec<Vec<u32>> = (0..width).map(column).collect();
    let letters = LetterClasses::by(|_, place| columns.get(told_apart.of(place)));
    let of_row = |row: &[u32]| -> Vec<u32> {
        letters.iter().filter_map(|it| row.get(told_apart.of(it.first)).copied()).collect()
    };
    let next: Vec<u32> = rows.chunks(width).flat_map(of_row).collect();
    let before = StatesBefore::of(&next, letters.len().max(1));
    let (can_accept, can_refuse) =
        (before.of_states(&accepts, true), before.of_states(&accepts, false));
    let states = accepts
        .into_iter()
        .zip(can_accept.into_iter().zip(can_refuse))
        .map(|(accepts, (can_accept, can_refuse))| AutomatonState {
            accepts,
            can_accept,
            can_refuse,
        })
        .collect();
    let mut automaton = Automaton { letters, next, states, ends: Ends::default() };
    automaton.ends = Ends { beginning: automaton.beginning(), ending: automaton.ending() };
    Ok(automaton)
}

/// Numbers the states that texts lead to, and returns for each the states behind the classes of letters, and
/// whether the pattern is found in what ends there.
fn walk(dense: &DFA<Vec<u32>>, letters: &LetterClasses) -> Option<(Vec<u32>, Vec<bool>)> {
    let first = dense.start_state(&start::Config::new().anchored(Anchored::Yes)).ok()?;
    let mut numbers: HashMap<StateID, u32> = HashMap::from([(first, 0)]);
    let mut order = vec![first];
    let mut rows: Vec<u32> = Vec::new();
    let mut at = 0;
    while let Some(state) = order.get(at).copied() {
        for class in letters.iter() {
            let letter = *ALPHABET.get(usize::from(class.first))?;
            let next = dense.next_state(state, letter);
            let new = u32::try_from(order.len()).ok()?;
            let number = *numbers.entry(next).or_insert(new);
            if number == new {
                order.push(next);
            }
            rows.push(number);
        }
        at += 1;
    }
    let accepts = |it: &StateID| dense.is_match_state(dense.next_eoi_state(*it));
    Some((rows, order.iter().map(accepts).collect()))
}

/// Returns the letter of what comes, if it is one letter alone.
fn only<'c>(mut classes: impl Iterator<Item = &'c LetterClass>) -> Option<u8> {
    let only = classes.next()?;
    (only.is_alone && classes.next().is_none()).then_some(only.first)
}

fn dense(pattern: &Pattern) -> Result<DFA<Vec<u32>>, NoAutomaton> {
    let parsed = parse::parse(pattern.as_str()).map_err(|_| NoAutomaton::Untranslated)?;
    let (text, _) = translate::translate(&parsed.ast).ok_or(NoAutomaton::Untranslated)?;
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
        .map_err(|_| NoAutomaton::TooLarge)
}

/// From which states each state is come to.
struct StatesBefore {
    /// All of them, those of one state beside each other.
    before: Vec<u32>,
    /// Where those of each state begin, and the last end.
    starts: Vec<usize>,
}

impl StatesBefore {
    /// Sorts the states by those behind them, of which each has so many.
    fn of(next: &[u32], width: usize) -> Self {
        let mut starts = vec![0; next.len() / width + 1];
        for to in next {
            if let Some(count) = starts.get_mut(*to as usize) {
                *count += 1;
            }
        }
        // Each end, from which the states are put before each other.
        let mut end = 0;
        for start in &mut starts {
            end += *start;
            *start = end;
        }
        let mut before = vec![0; next.len()];
        for (from, row) in (0..).zip(next.chunks(width)) {
            for to in row {
                if let Some(start) = starts.get_mut(*to as usize) {
                    *start -= 1;
                    if let Some(place) = before.get_mut(*start) {
                        *place = from;
                    }
                }
            }
        }
        Self { before, starts }
    }

    /// Returns of each state whether one can be come to from it that accepts, or refuses.
    fn of_states(&self, accepts: &[bool], wanted: bool) -> Vec<bool> {
        let mut can: Vec<bool> = accepts.iter().map(|it| *it == wanted).collect();
        let mut open: Vec<usize> =
            (0..can.len()).filter(|it| can.get(*it) == Some(&true)).collect();
        while let Some(state) = open.pop() {
            let (start, end) = (self.starts.get(state), self.starts.get(state + 1));
            let before = start.zip(end).and_then(|(start, end)| self.before.get(*start..*end));
            for from in before.into_iter().flatten() {
                if let Some(can) = can.get_mut(*from as usize).filter(|can| !**can) {
                    *can = true;
                    open.push(*from as usize);
                }
            }
        }
        can
    }
}
