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
        let is_kept = |index| {
            let (old, new) =
                (before.group(index), renumbering.after(index).map(|it| after.group(it)));
            if new.is_some_and(|new| std::ptr::eq(old, new)) {
                return true;
            }
            let (old, new) = (rule_of(old), new.and_then(rule_of));
            is_same(old, new) || of(new).covers(&of(old)) && self.covers(&of(new))
        };
        if let Some(changed) = before.changed_in(after) {
            return changed.into_iter().all(is_kept);
        }
        let mut added = after.indexes().filter(|it| renumbering.before(*it).is_none());
        before.indexes().all(is_kept) && added.all(|it| self.covers(&of(rule_of(after.group(it)))))
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
