//! Changing the rules of a few groups without compiling all others again.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::compile::RuleCompiler;
use super::compiled::{Index, Patch, RuleProgram};
use super::numbers::{GroupNumber, NONE};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Comparison, Condition};

/// How many groups may be asked without regard to guards before all are compiled again.
const GROUPS: usize = 64;

/// How many comparisons they may have together.
const TESTS: usize = 1024;

impl Index {
    /// Returns the index of a hierarchy that differs from the one of this index in what some groups
    /// say; `None` if it should be compiled from scratch.
    pub fn amended(
        &self,
        before: &Hierarchy,
        after: &Hierarchy,
        changed: &[GroupIndex],
    ) -> Option<Self> {
        let rule = |of: &Hierarchy, group: GroupIndex| of.group(group).rule.clone();
        let changed: Vec<GroupIndex> =
            changed.iter().copied().filter(|it| rule(before, *it) != rule(after, *it)).collect();
        if changed.is_empty() {
            return Some(self.clone());
        }
        // A rule where there was none is one more to match for all that stand below.
        if changed.iter().any(|it| rule(before, *it).is_none() || rule(after, *it).is_none()) {
            return None;
        }
        let place = |it: GroupIndex| u32::try_from(it.number()).unwrap_or(NONE);
        let patched = self.patch.iter().flat_map(|it| it.starts.iter().map(|(place, _)| *place));
        let places: BTreeSet<GroupNumber> = patched.chain(changed.into_iter().map(place)).collect();
        let rules = places.iter().filter_map(|place| {
            let index = after.at(*place as usize)?;
            Some((*place, after.group(index).rule.as_deref()?))
        });
        let rules: Vec<(GroupNumber, &Condition)> = rules.collect();
        if rules.len() > GROUPS || rules.iter().map(|(_, rule)| tests(rule)).sum::<usize>() > TESTS
        {
            return None;
        }
        let mut compiler = RuleCompiler::apart(self.paths.as_ref().clone());
        let mut starts = Vec::with_capacity(rules.len());
        for (place, rule) in rules {
            starts.push((place, compiler.here()));
            compiler.condition(rule);
        }
        let RuleCompiler { paths, code, sets, tests, .. } = compiler;
        let program = RuleProgram { code: code.into(), sets: sets.into(), tests: tests.into() };
        let patch = Patch { starts: starts.into(), program };
        let base = Arc::clone(&self.base);
        Some(Self { paths: Arc::new(paths), base, patch: Some(Arc::new(patch)) })
    }
}

/// Counts the comparisons of a rule, patterns more than others.
fn tests(rule: &Condition) -> usize {
    match rule {
        Condition::And(terms) | Condition::Or(terms) => terms.iter().map(tests).sum(),
        Condition::Not(inner) => tests(inner),
        Condition::Test(test) if matches!(test.comparison, Comparison::Finds(_)) => 8,
        Condition::Test(_) => 1,
    }
}
