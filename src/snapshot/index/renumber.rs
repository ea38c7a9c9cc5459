//! The compiled rules of one hierarchy for another that has most of its groups.
//!
//! A text or an ancestor that asks for a group goes on asking for it under its new number. What a group does not
//! find here, since it is new or has another ancestor to wait for, is left to the patch.

use std::sync::Arc;

use super::compiled::{CompiledRules, LiteralSearch, Op, RuleProgram, Searched};
use super::numbers::{GroupNumber, NONE};
use crate::hierarchy::{GroupIndex, Hierarchy, Renumbering};

/// How many groups may be added to the code before all are compiled again.
const ADDED: u32 = 256;

/// Which groups have rules, and below which they stand.
pub(super) struct RuleTree<'h> {
    hierarchy: &'h Hierarchy,
    /// The nearest ancestor with a rule of each group.
    above: Vec<GroupNumber>,
}

/// Returns the number of a group in the index.
pub(super) fn number(index: GroupIndex) -> GroupNumber {
    u32::try_from(index.number()).unwrap_or(NONE)
}

impl<'h> RuleTree<'h> {
    pub(super) fn of(hierarchy: &'h Hierarchy) -> Self {
        let mut above: Vec<GroupNumber> = Vec::with_capacity(hierarchy.len());
        for index in hierarchy.indexes() {
            above.push(hierarchy.parent(index).map_or(NONE, |parent| {
                let of_parent = above.get(parent.number()).copied().unwrap_or(NONE);
                let has_rule = hierarchy.group(parent).rule.is_some();
                if has_rule { number(parent) } else { of_parent }
            }));
        }
        Self { hierarchy, above }
    }

    fn above(&self, index: GroupIndex) -> GroupNumber {
        self.above.get(index.number()).copied().unwrap_or(NONE)
    }

    fn has_rule(&self, index: GroupIndex) -> bool {
        self.hierarchy.group(index).rule.is_some()
    }

    /// Returns whether a group with a rule stood in another tree, with a rule, below the same one.
    fn stays(&self, index: GroupIndex, before: &RuleTree<'_>, renumbering: &Renumbering) -> bool {
        let Some(stood) = renumbering.before(index) else { return false };
        let above = before.hierarchy.at(before.above(stood) as usize);
        before.has_rule(stood)
            && above.is_none_or(|it| renumbering.after(it).is_some())
            && above.and_then(|it| renumbering.after(it)).map_or(NONE, number) == self.above(index)
    }

    /// Returns the groups with a rule that do not stand below the same as before, or did not have one.
    pub(super) fn moved(
        &self,
        before: &RuleTree<'_>,
        renumbering: &Renumbering,
    ) -> impl Iterator<Item = GroupNumber> {
        let moved = |it: &GroupIndex| self.has_rule(*it) && !self.stays(*it, before, renumbering);
        self.hierarchy.indexes().filter(moved).map(number)
    }
}

impl CompiledRules {
    /// Returns the rules with the groups in their places; `None` if they should be compiled from scratch.
    ///
    /// The groups that [`RuleTree::moved`] returns must be asked about every node beside these.
    pub(super) fn renumbered(
        &self,
        before: &RuleTree<'_>,
        after: &RuleTree<'_>,
        renumbering: &Renumbering,
    ) -> Option<Self> {
        let now = |it: GroupNumber| {
            let index = before.hierarchy.at(it as usize)?;
            renumbering.after(index)
        };
        // The number of a group that is gone stands behind all others, where every search ends.
        let renumber = |it: GroupNumber| now(it).map_or(NONE, number);
        let waits = |it: &GroupIndex| after.stays(*it, before, renumbering);
        let dependents =
            self.dependents.renumbered(|it| now(it).filter(waits).map_or(NONE, number));
        let (code, starts, added) = self.code_for(before, after, renumbering);
        if added > ADDED {
            return None;
        }
        let RuleProgram { sets, tests, patterns, .. } = &self.program;
        let program = RuleProgram {
            code: code.into(),
            sets: Arc::clone(sets),
            tests: Arc::clone(tests),
            patterns: Arc::clone(patterns),
        };
        Some(Self {
            path_info: self.path_info.clone(),
            searches: self.searches.iter().map(|it| it.renumbered(&renumber)).collect(),
            texts: self.texts.renumbered(renumber),
            starts: starts.into(),
            dependents,
            always: self.always,
            program,
            added,
        })
    }

    /// Returns the code, where that of each group starts, and how many were added.
    fn code_for(
        &self,
        before: &RuleTree<'_>,
        after: &RuleTree<'_>,
        renumbering: &Renumbering,
    ) -> (Vec<Op>, Vec<u32>, u32) {
        let (mut code, mut added) = (self.program.code.to_vec(), self.added);
        let mut starts = Vec::with_capacity(after.hierarchy.len());
        for index in after.hierarchy.indexes() {
            let (above, end) = (after.above(index), number(after.hierarchy.end(index)));
            // Code that was compiled without a rule, or for one that is not there any more, is not used.
            let stood = renumbering.before(index);
            let stood = stood.filter(|it| before.has_rule(*it) == after.has_rule(index));
            let start = stood.and_then(|it| self.starts.get(it.number())).copied();
            let head = start.and_then(|it| code.get_mut(it as usize));
            if let (Some(start), Some(Op::Group { above: old_above, end: old_end, .. })) =
                (start, head)
            {
                (*old_above, *old_end) = (above, end);
                starts.push(start);
                continue;
            }
            starts.push(u32::try_from(code.len()).unwrap_or(NONE));
            code.extend([Op::Group { above, end, dependents: NONE }, Op::Never]);
            added = added.saturating_add(1);
        }
        (code, starts, added)
    }
}

impl LiteralSearch {
    fn renumbered(&self, number: &impl Fn(GroupNumber) -> GroupNumber) -> Self {
        let literals = self.literals.clone();
        Self { literals, paths: self.paths.iter().map(|it| it.renumbered(number)).collect() }
    }
}

impl Searched {
    fn renumbered(&self, number: &impl Fn(GroupNumber) -> GroupNumber) -> Self {
        let all = |of: &[GroupNumber]| of.iter().map(|it| number(*it)).collect();
        Self {
            path: self.path,
            asked_by: self.asked_by.renumbered(number),
            odd: all(&self.odd),
            not_ascii: all(&self.not_ascii),
            long: all(&self.long),
        }
    }
}
