//! Changing the rules and places of a few groups without compiling all others again.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::paths::Paths;
use super::compile::RuleCompiler;
use super::compiled::{Index, Patch};
use super::numbers::GroupNumber;
use super::renumber::{RuleTree, number};
use crate::hierarchy::{Hierarchy, Renumbering};
use crate::model::{Comparison, Condition, Group};

/// How many groups may be asked without regard to guards before all are compiled again.
const GROUPS: usize = 64;

/// How many comparisons they may have together.
const TESTS: usize = 1024;

impl Index {
    /// Returns the index of another hierarchy than that of this index, with the groups in their places; `None`
    /// if it should be compiled from scratch.
    pub fn amended(
        &self,
        before: &Hierarchy,
        after: &Hierarchy,
        renumbering: &Renumbering,
    ) -> Option<Self> {
        let mut changed: BTreeSet<GroupNumber> = BTreeSet::new();
        // A rule where there was none, or none where there was one: what stands below depends on another.
        let mut adds_or_removes = false;
        let candidates = before.changed_in(after).unwrap_or_else(|| after.indexes().collect());
        for index in candidates {
            let group = after.group(index);
            let stood = renumbering.before(index).map(|it| before.group(it));
            if stood.is_some_and(|it| has_rule_of(it, group)) {
                continue;
            }
            adds_or_removes |= stood.is_none_or(|it| it.rule.is_none() || group.rule.is_none());
            changed.insert(number(index));
            if changed.len() > GROUPS {
                return None;
            }
        }
        let patched = self.patch.iter().flat_map(|it| it.starts.iter().map(|(place, _)| *place));
        let now = |it: GroupNumber| before.at(it as usize).and_then(|it| renumbering.after(it));
        let keeps_tree = after.has_tree_of(before) && !adds_or_removes;
        if keeps_tree && changed.is_empty() {
            return Some(self.clone());
        }
        let patched: Vec<GroupNumber> = patched.filter_map(now).map(number).collect();
        let base = if keeps_tree {
            Arc::clone(&self.base)
        } else {
            let (before, now) = (RuleTree::of(before), RuleTree::of(after));
            changed.extend(now.moved(&before, renumbering).take(GROUPS + 1));
            Arc::new(self.base.renumbered(&before, &now, renumbering)?)
        };
        changed.extend(patched);
        let (paths, patch) = self.patch_of(after, &changed)?;
        Some(Self { paths: Arc::new(paths), base, patch: Some(Arc::new(patch)) })
    }

    /// Compiles the rules of some groups.
    fn patch_of(
        &self,
        hierarchy: &Hierarchy,
        places: &BTreeSet<GroupNumber>,
    ) -> Option<(Paths, Patch)> {
        let rules = places.iter().filter_map(|place| {
            let index = hierarchy.at(*place as usize)?;
            Some((*place, hierarchy.group(index).rule.as_deref()?))
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
        let (paths, program) = compiler.finish();
        Some((paths, Patch { starts: starts.into(), program }))
    }
}

/// Returns whether two groups have the same rule.
fn has_rule_of(one: &Group, other: &Group) -> bool {
    std::ptr::eq(one, other) || one.rule == other.rule
}

/// Counts the comparisons of a rule, those that read a whole text or list more than others.
fn tests(rule: &Condition) -> usize {
    match rule {
        Condition::And(terms) | Condition::Or(terms) => terms.iter().map(tests).sum(),
        Condition::Not(inner) => tests(inner),
        Condition::Test(test) => match test.comparison {
            Comparison::Finds(_) | Comparison::Contains(_) => 8,
            Comparison::Equals(_) | Comparison::Number(_) => 1,
        },
    }
}
