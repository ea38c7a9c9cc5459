//! Rules as code.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::super::paths::{PathId, Paths};
use super::compiled::{CompiledTest, Op, RuleProgram};
use super::numbers::NONE;
use super::text_table::TextPlace;
use super::texts::{TextId, TextIndex, TextSide};
use crate::model::{Comparison, Condition, has_exponent};

/// Compiles one rule after the other.
#[derive(Default)]
pub(super) struct RuleCompiler {
    pub(super) paths: Paths,
    pub(super) texts: TextIndex,
    pub(super) code: Vec<Op>,
    /// The members of sets, by their numbers until [`Self::place_texts`].
    pub(super) sets: Vec<TextId>,
    pub(super) tests: Vec<CompiledTest>,
    /// How many conditions ask for each text.
    pub(super) uses: Vec<u32>,
    /// Whether texts are compared one by one, since their numbers are never looked up.
    apart: bool,
    known: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl RuleCompiler {
    /// Prepares to compile rules that stand beside an index.
    pub(super) fn apart(paths: Paths) -> Self {
        Self { paths, apart: true, ..Self::default() }
    }

    pub(super) fn here(&self) -> u32 {
        u32::try_from(self.code.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::And(terms) => self.join(|end| Op::And { end }, |it| it.all(terms)),
            Condition::Or(terms) => self.join(|end| Op::Or { end }, |it| it.any(terms)),
            Condition::Not(inner) => {
                self.code.push(Op::Not);
                self.condition(inner);
            }
            Condition::Test(test) => {
                let op = match (self.paths.intern(&test.path), &test.comparison) {
                    // What has no number as its operand never holds either.
                    (None, _) => Op::Never,
                    (_, comparison) if comparison.lacks_number() => Op::Never,
                    (Some(path), Comparison::Equals(text))
                        if !self.apart && !has_exponent(text) =>
                    {
                        let text = self.texts.intern(path, TextSide::Value, text);
                        self.count(text);
                        Op::Is { path, text }
                    }
                    (Some(path), Comparison::Contains(text))
                        if !self.apart && !has_exponent(text) =>
                    {
                        let element = self.texts.intern(path, TextSide::Element, text);
                        self.count(element);
                        Op::Has { element }
                    }
                    (Some(path), comparison) => Op::Test(self.test(path, comparison)),
                };
                self.code.push(op);
            }
        }
    }

    fn join(&mut self, op: impl Fn(u32) -> Op, parts: impl FnOnce(&mut Self)) {
        let at = self.code.len();
        self.code.push(Op::Never);
        parts(self);
        let end = self.here();
        if let Some(place) = self.code.get_mut(at) {
            *place = op(end);
        }
    }

    fn all(&mut self, terms: &[Condition]) {
        for term in terms {
            self.condition(term);
        }
    }

    /// Compiles the terms of an `or`; those that compare one value with texts become one.
    fn any(&mut self, terms: &[Condition]) {
        if self.apart {
            return self.all(terms);
        }
        let mut sets: Vec<(PathId, Vec<TextId>)> = Vec::new();
        for term in terms {
            if let Condition::Test(test) = term
                && let Some(text) = looked_up(&test.comparison)
                && let Some(path) = self.paths.intern(&test.path)
            {
                let text = self.texts.intern(path, TextSide::Value, text);
                self.count(text);
                match sets.iter_mut().find(|(it, _)| *it == path) {
                    Some((_, set)) => set.push(text),
                    None => sets.push((path, vec![text])),
                }
            }
        }
        // Whether one is equal is always known, so they may go first.
        for (path, mut set) in sets {
            set.sort_unstable();
            set.dedup();
            if let [text] = *set {
                self.code.push(Op::Is { path, text });
                continue;
            }
            let number = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
            let first = number(self.sets.len());
            self.sets.extend(set);
            self.code.push(Op::OneOf { path, first, end: number(self.sets.len()) });
        }
        let is_other = |term: &&Condition| !matches!(term, Condition::Test(test) if looked_up(&test.comparison).is_some());
        for term in terms.iter().filter(is_other) {
            self.condition(term);
        }
    }

    /// Counts a condition that asks for a text.
    fn count(&mut self, text: TextId) {
        if self.uses.len() < self.texts.len() {
            self.uses.resize(self.texts.len(), 0);
        }
        if let Some(uses) = self.uses.get_mut(text as usize) {
            *uses += 1;
        }
    }

    /// Names the texts in the code by their places instead of their numbers. They have the same order, so sets stay in
    /// theirs.
    pub(super) fn place_texts(&mut self, places: &[TextPlace]) {
        let in_code = self.code.iter_mut().filter_map(|op| match op {
            Op::Is { text, .. } | Op::Has { element: text } => Some(text),
            _ => None,
        });
        for text in in_code.chain(&mut self.sets) {
            *text = places.get(*text as usize).copied().unwrap_or(NONE);
        }
    }

    /// Takes the compiled rules, and the paths that they mention.
    pub(super) fn finish(self) -> (Paths, RuleProgram) {
        let Self { paths, mut code, sets, tests, .. } = self;
        let mut patterns = Vec::new();
        let code_of: Vec<Option<u32>> =
            tests.iter().map(|it| push_code(it, &mut patterns)).collect();
        for op in &mut code {
            let Op::Test(test) = *op else { continue };
            let of = |it: u32| Some((tests.get(it as usize)?.path, (*code_of.get(it as usize)?)?));
            if let Some((path, pattern)) = of(test) {
                *op = Op::Finds { path, test, pattern };
            }
        }
        let program = RuleProgram {
            code: code.into(),
            sets: sets.into(),
            tests: tests.into(),
            patterns: patterns.into(),
        };
        (paths, program)
    }

    /// Returns the number of a comparison, which is kept once among all rules.
    fn test(&mut self, path: PathId, comparison: &Comparison) -> u32 {
        if self.apart {
            let number = u32::try_from(self.tests.len()).unwrap_or(u32::MAX);
            self.tests.push(CompiledTest {
                path,
                comparison: comparison.clone(),
                is_shared: false,
            });
            return number;
        }
        let key = (path, comparison.operator(), comparison.operand());
        let hash = self.hasher.hash_one(key);
        let of = |test: &CompiledTest| {
            self.hasher.hash_one((test.path, test.comparison.operator(), test.comparison.operand()))
        };
        let tests = &mut self.tests;
        let is_it = |it: &u32| {
            tests.get(*it as usize).is_some_and(|test| {
                (test.path, test.comparison.operator(), test.comparison.operand()) == key
            })
        };
        let number = if let Some(known) = self.known.find(hash, is_it) {
            let known = *known;
            if let Some(test) = tests.get_mut(known as usize) {
                test.is_shared = true;
            }
            known
        } else {
            let number = u32::try_from(tests.len()).unwrap_or(u32::MAX);
            tests.push(CompiledTest { path, comparison: comparison.clone(), is_shared: false });
            let hash_of = |it: &u32| tests.get(*it as usize).map_or(0, of);
            self.known.insert_unique(hash, number, hash_of);
            number
        };
        self.count_parts(path, comparison);
        number
    }

    /// Counts the texts that a comparison asks for.
    fn count_parts(&mut self, path: PathId, comparison: &Comparison) {
        let Comparison::Finds(pattern) = comparison else { return };
        let sets = pattern.required().map(|it| it.texts.as_ref()).unwrap_or_default();
        for literal in sets.iter().flatten() {
            let text = self.texts.intern(path, TextSide::Part, &literal.as_ref().into());
            self.count(text);
        }
    }
}

/// Adds the code of a pattern, if it has some, and returns where that is.
fn push_code(test: &CompiledTest, patterns: &mut Vec<u8>) -> Option<u32> {
    let Comparison::Finds(pattern) = &test.comparison else { return None };
    let one_pass = pattern.one_pass()?;
    // What many rules ask is asked once for a node, unless it takes less than to look that up.
    if test.is_shared && !one_pass.is_at_start() {
        return None;
    }
    let at = u32::try_from(patterns.len()).ok()?;
    patterns.extend(u16::try_from(one_pass.code().len()).ok()?.to_le_bytes());
    patterns.extend_from_slice(one_pass.code());
    Some(at)
}

/// Returns the text of which the value must be, if one look-up finds it: a number with an exponent
/// has several texts.
fn looked_up(comparison: &Comparison) -> Option<&Arc<str>> {
    match comparison {
        Comparison::Equals(text) if !has_exponent(text) => Some(text),
        _ => None,
    }
}
