//! Which groups match a node.

use super::ClassificationError;
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{Condition, Node};
use crate::rule::{EvaluationError, Explained, evaluate, explain};

/// A group that matches.
#[derive(Clone, Copy, Debug)]
pub struct Match<'h> {
    /// The group.
    pub group: GroupIndex,
    rule: &'h Condition,
}

impl<'h> Match<'h> {
    /// Returns the match of a group that has a rule.
    pub(super) fn of(hierarchy: &'h Hierarchy, group: GroupIndex) -> Option<Self> {
        Some(Self { group, rule: hierarchy.group(group).rule.as_deref()? })
    }

    /// Returns the group's own rule, every term evaluated.
    pub fn explain(&self, node: &Node) -> Explained<'h> {
        explain(self.rule, node)
    }

    /// Returns the group's own rule.
    pub fn rule(&self) -> &'h Condition {
        self.rule
    }
}

/// Returns the groups whose own rule, and the rule of every ancestor that has one, holds for the
/// node; parents first. A group without a rule matches nothing itself.
///
/// Every group is asked that its ancestors do not rule out. This is what the index of a snapshot
/// must agree with, and the faster way where a single node is classified.
///
/// # Errors
///
/// Returns [`ClassificationError`] if it cannot be found out whether a group matches.
pub fn matches(hierarchy: &Hierarchy, node: &Node) -> Result<Vec<GroupIndex>, ClassificationError> {
    matches_within(hierarchy, hierarchy.indexes(), node)
}

/// Returns the groups of a stretch of the tree that match a node, as [`matches`] finds them, given that
/// the rules of the ancestors that are not in it hold.
///
/// # Errors
///
/// Returns [`ClassificationError`] if it cannot be found out whether a group matches.
pub fn matches_within(
    hierarchy: &Hierarchy,
    groups: impl IntoIterator<Item = GroupIndex>,
    node: &Node,
) -> Result<Vec<GroupIndex>, ClassificationError> {
    let mut found = Vec::new();
    let mut at = hierarchy.root();
    let mut rest = groups.into_iter();
    while let Some(index) = rest.find(|index| *index >= at) {
        let group = hierarchy.group(index);
        at = index;
        let Some(rule) = &group.rule else { continue };
        let fail = |cause: EvaluationError| ClassificationError::of(group, cause);
        if evaluate(rule, node).map_err(fail)? {
            found.push(index);
        } else {
            // What does not match hides its descendants.
            at = hierarchy.end(index);
        }
    }
    Ok(found)
}

/// Returns whether one group matches a node, as [`matches`] finds it, without asking any group but its
/// ancestors.
///
/// # Errors
///
/// Returns [`ClassificationError`] if that depends on a rule that cannot be evaluated.
pub fn is_member(
    hierarchy: &Hierarchy,
    group: GroupIndex,
    node: &Node,
) -> Result<bool, ClassificationError> {
    if hierarchy.group(group).rule.is_none() {
        return Ok(false);
    }
    let mut failed = None;
    for group in hierarchy.lineage(group).map(|it| hierarchy.group(it)) {
        let Some(rule) = &group.rule else { continue };
        match evaluate(rule, node) {
            Ok(true) => {}
            // Whatever the other rules are, the group does not match.
            Ok(false) => return Ok(false),
            Err(cause) => failed = Some(ClassificationError::of(group, cause)),
        }
    }
    failed.map_or(Ok(true), Err)
}
