//! Running a program: backtracking that remembers what has failed.
//!
//! Whether a state (instruction, place in the subject, which loops have moved on) leads to a match
//! does not depend on how it was reached, unless the pattern refers to captures. So a state that
//! has failed once is not tried again, and the work is bounded by the number of states. All of it
//! runs under a budget of steps.

mod place;

pub(super) use place::is_terminator;

use std::collections::{HashMap, HashSet};

use super::ast::{Case, Direction, Reference};
use super::effort::count_steps;
use super::error::Overrun;
use super::fold;
use super::program::{Instruction, Program};

/// The most steps, whatever the pattern and subject: some tens of milliseconds.
const MOST_STEPS: u64 = 3_000_000;

/// The steps that every run may take.
const LEAST_STEPS: u64 = 100_000;

/// The most states that are remembered one bit each; above that, as a set.
const BITMAP_LIMIT: usize = 1 << 27;

/// Finds the first match in a subject; returns where it starts and ends, in characters.
pub(super) fn find(program: &Program, subject: &[char]) -> Result<Option<(usize, usize)>, Overrun> {
    let places = subject.len() as u64 + 1;
    let states = (program.code.len() as u64).saturating_mul(places);
    // A look-behind may begin at every place before the one it stands at.
    let runs = if program.looks_behind() { places } else { 1 };
    let budget = states.saturating_mul(4).saturating_mul(runs).clamp(LEAST_STEPS, MOST_STEPS);
    let mut run = Backtracker {
        program,
        subject,
        steps: budget,
        failed: Failed::new(program, subject.len()),
        ends: HashMap::new(),
        opened: vec![0; program.captures as usize],
        captures: vec![None; program.captures as usize],
    };
    let found = run.find_first();
    count_steps(budget.saturating_sub(run.steps));
    found
}

/// Returns whether no search in a subject of so many characters can run out of steps.
///
/// A state at which there is a choice is tried once, and between two choices every instruction is
/// passed once at the most; that bounds the steps of programs without captures and counted loops.
pub(super) fn always_ends(program: &Program, length: usize) -> bool {
    let places = length as u64 + 1;
    program.captures == 0
        && program.bits == 0
        && most_steps(program, 0, places, places).is_some_and(|steps| steps <= LEAST_STEPS)
}

/// Returns the most steps of a program that is begun at some places, if they are bounded.
fn most_steps(program: &Program, number: usize, starts: u64, places: u64) -> Option<u64> {
    let start = *program.starts.get(number)? as usize;
    let code = program.code.get(start..)?;
    let end = code.iter().position(|it| matches!(it, Instruction::Match))?;
    let (mut choices, mut steps) = (0_u64, end as u64 + 1);
    for instruction in code.get(..end)? {
        let inner = match instruction {
            Instruction::Split(..) => {
                choices += 1;
                0
            }
            Instruction::Atomic(inner) => most_steps(program, *inner as usize, 1, places)?,
            Instruction::Look { program: inner, direction: Direction::Ahead, .. } => {
                most_steps(program, *inner as usize, 1, places)?
            }
            // Behind, what has failed is not remembered.
            Instruction::Look { .. }
            | Instruction::Reference(_)
            | Instruction::Grapheme
            | Instruction::Enter(_)
            | Instruction::Leave { .. } => return None,
            Instruction::Set(_)
            | Instruction::Jump(_)
            | Instruction::Assert(_)
            | Instruction::Open(_)
            | Instruction::Close(_)
            | Instruction::Match => 0,
        };
        steps = steps.saturating_add(inner);
    }
    let runs = choices.saturating_mul(2).saturating_mul(places).saturating_add(starts);
    Some(runs.saturating_mul(steps))
}

/// The states that lead nowhere.
enum Failed {
    /// Captures are referred to: nothing can be said of a state.
    Unknown,
    Bits {
        bits: Vec<u64>,
        width: usize,
    },
    Set(HashSet<Thread>),
}

impl Failed {
    fn new(program: &Program, length: usize) -> Self {
        let width = length + 1;
        let states = program.code.len().saturating_mul(width);
        if program.captures > 0 {
            Self::Unknown
        } else if program.bits == 0 && states <= BITMAP_LIMIT {
            Self::Bits { bits: vec![0; states.div_ceil(64)], width }
        } else {
            Self::Set(HashSet::new())
        }
    }

    /// Notes a state as tried; returns whether it was noted before.
    fn note(&mut self, at: u32, place: usize, moved: u32) -> bool {
        match self {
            Self::Unknown => false,
            Self::Bits { bits, width } => {
                let state = at as usize * *width + place;
                let Some(word) = bits.get_mut(state / 64) else { return false };
                let bit = 1 << (state % 64);
                let before = *word & bit != 0;
                *word |= bit;
                before
            }
            Self::Set(states) => !states.insert((at, place, moved)),
        }
    }
}

/// What to go back to.
#[derive(Clone, Copy)]
enum Retry {
    State { at: u32, place: usize, moved: u32 },
    Opened { index: usize, before: usize },
    Capture { index: usize, before: Option<(usize, usize)> },
}

/// A state of the matcher: an instruction, a place in the subject, which loops have moved on.
type Thread = (u32, usize, u32);

/// Where a match ends, if there is one.
type MatchEnd = Result<Option<usize>, Overrun>;

/// What a program is run for.
enum Goal {
    /// Its first match.
    First,
    /// A match that ends at a place, with the states that do not lead there, from any start.
    End(usize, HashSet<Thread>),
}

/// The most results of programs that are kept.
const MOST_ENDS: usize = 1 << 17;

struct Backtracker<'r> {
    program: &'r Program,
    subject: &'r [char],
    steps: u64,
    failed: Failed,
    /// Where the first match of a program at a place ends, as far as that is known.
    ends: HashMap<(u32, usize), Option<usize>>,
    /// Where captures started that have not ended.
    opened: Vec<usize>,
    /// Where captures started and ended last.
    captures: Vec<Option<(usize, usize)>>,
}

/// Returns the state behind a part of the subject that an instruction took, if it did.
fn behind((at, place, moved): Thread, end: Option<usize>) -> Option<Thread> {
    end.map(|end| (at + 1, end, if end > place { u32::MAX } else { moved }))
}

impl Backtracker<'_> {
    fn find_first(&mut self) -> Result<Option<(usize, usize)>, Overrun> {
        for start in 0..=self.subject.len() {
            if let Some(end) = self.program(0, start, &mut Goal::First)? {
                return Ok(Some((start, end)));
            }
            self.captures.fill(None);
        }
        Ok(None)
    }

    fn step(&mut self) -> Result<(), Overrun> {
        self.steps = self.steps.checked_sub(1).ok_or(Overrun)?;
        Ok(())
    }

    /// Runs the program of an atomic group or a look-ahead at a place. Without captures the result
    /// depends on nothing else, so it is kept.
    fn first(&mut self, number: u32, place: usize) -> MatchEnd {
        if let Some(end) = self.ends.get(&(number, place)) {
            return Ok(*end);
        }
        let end = self.program(number, place, &mut Goal::First)?;
        if self.program.captures == 0 && self.ends.len() < MOST_ENDS {
            self.ends.insert((number, place), end);
        }
        Ok(end)
    }

    /// Runs a program at a place and returns where its first match ends that reaches the goal.
    fn program(&mut self, number: u32, place: usize, goal: &mut Goal) -> MatchEnd {
        let Some(start) = self.program.starts.get(number as usize).copied() else {
            return Ok(None);
        };
        let mut tried: Vec<Thread> = Vec::new();
        let found = self.run((start, place, 0), goal, &mut tried)?;
        if found.is_some() {
            // What has matched once is not a failure to a later run.
            self.forget(&tried);
        }
        Ok(found)
    }

    /// Executes instructions from a state on, and notes the states that it tried.
    fn run(&mut self, from: Thread, goal: &mut Goal, tried: &mut Vec<Thread>) -> MatchEnd {
        let program = self.program;
        let mut choices: Vec<Retry> = Vec::new();
        let mut state = Some(from);
        loop {
            let Some(current) = state else {
                let Some(choice) = choices.pop() else { return Ok(None) };
                state = self.take_back(choice);
                continue;
            };
            self.step()?;
            let (at, place, moved) = current;
            let next = (at + 1, place, moved);
            let Some(instruction) = program.code.get(at as usize) else { return Ok(None) };
            state = match instruction {
                Instruction::Match => match goal {
                    Goal::End(end, _) if *end != place => None,
                    _ => return Ok(Some(place)),
                },
                Instruction::Set(set) => {
                    self.is_taken(*set, place).then_some((at + 1, place + 1, u32::MAX))
                }
                Instruction::Jump(to) => Some((*to, place, moved)),
                Instruction::Split(first, second) => {
                    if self.has_failed(current, goal, tried) {
                        None
                    } else {
                        choices.push(Retry::State { at: *second, place, moved });
                        Some((*first, place, moved))
                    }
                }
                Instruction::Assert(assertion) => self.holds(*assertion, place).then_some(next),
                Instruction::Open(index) => {
                    choices.extend(self.open(*index as usize, place));
                    Some(next)
                }
                Instruction::Close(index) => {
                    choices.extend(self.close(*index as usize, place));
                    Some(next)
                }
                Instruction::Reference(reference) => {
                    behind(current, self.referenced(*reference, place)?)
                }
                Instruction::Grapheme => {
                    self.grapheme_end(place).map(|after| (at + 1, after, u32::MAX))
                }
                Instruction::Enter(bit) => Some((at + 1, place, moved & !(1 << bit))),
                Instruction::Leave { bit, exit } => {
                    let has_moved = moved & (1 << bit) != 0;
                    let to = if has_moved { Some(at + 1) } else { *exit };
                    to.map(|to| (to, place, moved))
                }
                Instruction::Atomic(number) => behind(current, self.first(*number, place)?),
                Instruction::Look { program, direction, negative } => {
                    let found = self.look(*program, *direction, place)?;
                    (found != *negative).then_some(next)
                }
            };
        }
    }

    /// Returns the state that a choice leads to; none if it only restored a capture.
    #[inline]
    fn take_back(&mut self, choice: Retry) -> Option<Thread> {
        match choice {
            Retry::State { at, place, moved } => return Some((at, place, moved)),
            Retry::Opened { index, before } => {
                if let Some(value) = self.opened.get_mut(index) {
                    *value = before;
                }
            }
            Retry::Capture { index, before } => {
                if let Some(value) = self.captures.get_mut(index) {
                    *value = before;
                }
            }
        }
        None
    }

    /// Returns whether a state has been tried, and notes that it is.
    #[inline]
    fn has_failed(&mut self, state: Thread, goal: &mut Goal, tried: &mut Vec<Thread>) -> bool {
        match goal {
            Goal::First => {
                let (at, place, moved) = state;
                if self.failed.note(at, place, moved) {
                    return true;
                }
                tried.push(state);
                false
            }
            Goal::End(_, failed) => self.program.captures == 0 && !failed.insert(state),
        }
    }

    /// Returns whether the character at a place is one of a set.
    #[inline]
    fn is_taken(&self, set: u32, place: usize) -> bool {
        let set = self.program.sets.get(set as usize);
        let character = self.subject.get(place);
        set.zip(character).is_some_and(|(set, it)| set.contains(u32::from(*it)))
    }

    /// Notes where a capture starts; returns how to take that back.
    fn open(&mut self, index: usize, place: usize) -> Option<Retry> {
        let before = std::mem::replace(self.opened.get_mut(index)?, place);
        Some(Retry::Opened { index, before })
    }

    /// Notes where a capture ends; returns how to take that back.
    fn close(&mut self, index: usize, place: usize) -> Option<Retry> {
        let start = *self.opened.get(index)?;
        let before = self.captures.get_mut(index)?.replace((start, place));
        Some(Retry::Capture { index, before })
    }

    /// Takes back that states have failed, of a run that did not fail.
    fn forget(&mut self, tried: &[Thread]) {
        match &mut self.failed {
            Failed::Unknown => {}
            Failed::Bits { bits, width } => {
                for (at, place, _) in tried {
                    let state = *at as usize * *width + place;
                    if let Some(word) = bits.get_mut(state / 64) {
                        *word &= !(1 << (state % 64));
                    }
                }
            }
            Failed::Set(states) => {
                for state in tried {
                    states.remove(state);
                }
            }
        }
    }

    fn look(&mut self, number: u32, direction: Direction, place: usize) -> Result<bool, Overrun> {
        let Direction::Behind { least, most } = direction else {
            return Ok(self.first(number, place)?.is_some());
        };
        // The sums are Java's, which overflow.
        let here = i32::try_from(place).unwrap_or(i32::MAX);
        let from = here.wrapping_sub(most).max(0);
        let mut at = here.wrapping_sub(least);
        let mut goal = Goal::End(place, HashSet::new());
        while at >= from {
            self.step()?;
            let start = usize::try_from(at).unwrap_or(0);
            if self.program(number, start, &mut goal)?.is_some() {
                return Ok(true);
            }
            at -= 1;
        }
        Ok(false)
    }

    /// Returns the place behind the text of a capture, if that text is here.
    fn referenced(&mut self, reference: Reference, place: usize) -> MatchEnd {
        let index = (reference.group as usize).checked_sub(1);
        let capture = index.and_then(|index| self.captures.get(index).copied().flatten());
        let Some((start, end)) = capture else { return Ok(None) };
        let length = end.saturating_sub(start);
        self.steps = self.steps.checked_sub(length as u64).ok_or(Overrun)?;
        let (text, here) = (self.subject.get(start..end), self.subject.get(place..place + length));
        let (Some(text), Some(here)) = (text, here) else { return Ok(None) };
        let alike = |a: char, b: char| match reference.case {
            Case::Exact => a == b,
            Case::Ascii => a.eq_ignore_ascii_case(&b),
            Case::Unicode => a == b || fold::fold(u32::from(a)) == fold::fold(u32::from(b)),
        };
        let same = text.iter().zip(here).all(|(a, b)| alike(*a, *b));
        Ok(same.then_some(place + length))
    }
}
