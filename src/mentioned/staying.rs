//! Whether a change of groups can change what they mention.

use super::paths::MentionedPaths;
use crate::hierarchy::{Hierarchy, Renumbering};
use crate::model::{Condition, Group};

impl MentionedPaths {
    /// Returns whether rules are known to mention the same paths after a change of groups, which mention these before it:
    /// no rule that is gone mentions what its group does not any more, and no new one mentions others.
    pub(crate) fn stay(
        &self,
        before: &Hierarchy,
        after: &Hierarchy,
        renumbering: &Renumbering,
    ) -> bool {
        let rule_after = |it| renumbering.after(it).and_then(|it| rule_of(after.group(it)));
        let is_kept = before.indexes().all(|index| {
            let (old, new) = (rule_of(before.group(index)), rule_after(index));
            is_same(old, new) || of(new).covers(&of(old)) && self.covers(&of(new))
        });
        let mut added = after.indexes().filter(|it| renumbering.before(*it).is_none());
        is_kept && added.all(|it| self.covers(&of(rule_of(after.group(it)))))
    }
}

fn rule_of(group: &Group) -> Option<&Condition> {
    group.rule.as_deref()
}

fn of(rule: Option<&Condition>) -> MentionedPaths {
    rule.map(MentionedPaths::of_rule).unwrap_or_default()
}

/// Returns whether two rules are one in memory, as those of groups that stay are.
fn is_same(old: Option<&Condition>, new: Option<&Condition>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => std::ptr::eq(old, new),
        (None, None) => true,
        _ => false,
    }
}
