//! The texts of which a node must have one for a rule to hold.

use hashbrown::HashMap;

use super::super::paths::PathId;
use super::compile::RuleCompiler;
use super::compiled::{CompiledTest, Op};
use super::texts::{TextId, TextSide};
use crate::java_regex::KnownSubjects;
use crate::model::Comparison;

/// The texts of which one must be there.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    /// How often one of them is thought to be there, in 2³² of all nodes.
    pub(super) cost: u64,
    pub(super) texts: Vec<TextId>,
    /// The paths where literals are looked for, and the values in which that says something.
    pub(super) paths: Vec<(PathId, KnownSubjects)>,
}

/// The cost of what always is there.
pub(super) const ALWAYS: u64 = 1 << 32;

/// Chooses guards.
pub(super) struct Chooser<'c> {
    compiler: &'c RuleCompiler,
    /// How many conditions ask for texts of a path.
    totals: HashMap<(PathId, TextSide), u64>,
}

impl<'c> Chooser<'c> {
    pub(super) fn new(compiler: &'c RuleCompiler) -> Self {
        let mut totals = HashMap::new();
        for ((path, side, _), uses) in compiler.texts.iter().zip(&compiler.uses) {
            *totals.entry((*path, *side)).or_insert(0) += u64::from(*uses);
        }
        Self { compiler, totals }
    }

    /// Returns the best guard of the code at a place, which is moved behind it.
    pub(super) fn guard(&self, at: &mut usize) -> Option<Guard> {
        let op = self.compiler.code.get(*at).copied()?;
        *at += 1;
        match op {
            Op::And { end } => {
                let mut best: Option<Guard> = None;
                while *at < end as usize {
                    let guard = self.guard(at);
                    if let Some(guard) = guard
                        && best.as_ref().is_none_or(|best| guard.cost < best.cost)
                    {
                        best = Some(guard);
                    }
                }
                best
            }
            Op::Or { end } => {
                let mut union = Some(Guard { cost: 0, texts: Vec::new(), paths: Vec::new() });
                while *at < end as usize {
                    let guard = self.guard(at);
                    union = union.zip(guard).map(|(mut union, guard)| {
                        union.cost += guard.cost;
                        union.texts.extend(guard.texts);
                        union.paths.extend(guard.paths);
                        union
                    });
                }
                union.filter(|it| it.cost < ALWAYS)
            }
            Op::Not => {
                self.guard(at);
                None
            }
            Op::Never | Op::Group { .. } => {
                Some(Guard { cost: 0, texts: Vec::new(), paths: Vec::new() })
            }
            Op::Is { text, .. } | Op::Has { element: text } => Some(self.of_texts([text])),
            Op::OneOf { first, end, .. } => {
                let set = self.compiler.sets.get(first as usize..end as usize)?;
                Some(self.of_texts(set.iter().copied()))
            }
            Op::Test(number) | Op::Finds { test: number, .. } => {
                self.test(self.compiler.tests.get(number as usize)?)
            }
        }
    }

    fn test(&self, test: &CompiledTest) -> Option<Guard> {
        let texts = &self.compiler.texts;
        match &test.comparison {
            Comparison::Finds(pattern) => {
                let required = pattern.required()?;
                let ids = |set: &[Box<str>]| -> Option<Vec<TextId>> {
                    set.iter().map(|it| texts.get(test.path, TextSide::Part, it)).collect()
                };
                let all = required.texts.iter().filter_map(|set| ids(set));
                let mut best = all.map(|set| self.of_texts(set)).min_by_key(|guard| guard.cost)?;
                best.paths.push((test.path, required.of));
                Some(best)
            }
            Comparison::Equals(_) | Comparison::Contains(_) | Comparison::Number(_) => None,
        }
    }

    fn of_texts(&self, texts: impl IntoIterator<Item = TextId>) -> Guard {
        let texts: Vec<TextId> = texts.into_iter().collect();
        let cost = texts.iter().map(|text| self.cost(*text)).sum();
        Guard { cost, texts, paths: Vec::new() }
    }

    /// A text that many rules ask for is thought to be common among nodes.
    fn cost(&self, text: TextId) -> u64 {
        let uses = self.compiler.uses.get(text as usize).copied().unwrap_or(0);
        let Some((path, side, _)) = self.compiler.texts.iter().nth(text as usize) else {
            return ALWAYS;
        };
        let total = self.totals.get(&(*path, *side)).copied().unwrap_or(1).max(1);
        ALWAYS * u64::from(uses) / total
    }
}
