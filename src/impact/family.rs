//! The groups that can have a part in what one node gets, in some mixture of the two states.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::comparison::StateComparison;
use super::version::{STATES, StateVersion};
use crate::model::{Group, GroupId, Node};
use crate::rule::{EvaluationError, evaluate};

/// What the own rule of a group says of the node; none if the group has no rule.
pub(super) type Truth = Option<Result<bool, EvaluationError>>;

/// Groups, by identity, with all that are above them in some mixture.
pub(super) struct Family<'a> {
    /// In the order of their identities.
    members: Vec<FamilyMember<'a>>,
}

/// The place of a group in a [`Family`].
pub(super) type MemberIndex = usize;

/// A group, as each state has it.
pub(super) struct FamilyMember<'a> {
    pub(super) id: GroupId,
    versions: [Option<MemberVersion<'a>>; 2],
}

/// A group as one of the states has it.
pub(super) struct MemberVersion<'a> {
    pub(super) group: &'a Arc<Group>,
    /// The identity of its parent.
    pub(super) parent: GroupId,
    /// Where its parent is; none for the root group.
    pub(super) above: Option<MemberIndex>,
    truth: OnceCell<Truth>,
}

impl<'a> Family<'a> {
    /// Gathers the groups that are above some in any mixture.
    pub(super) fn of(comparison: &StateComparison<'a>, groups: &BTreeSet<GroupId>) -> Self {
        let mut ids = BTreeSet::new();
        for id in groups {
            comparison.ancestry(*id, &mut ids);
        }
        let ids: Vec<GroupId> = ids.into_iter().collect();
        let version = |id: GroupId, version| {
            let group = comparison.group(id, version)?;
            let parent = comparison.identity(group.parent);
            let above = ids.binary_search(&parent).ok().filter(|_| id != GroupId::ROOT);
            Some(MemberVersion { group, parent, above, truth: OnceCell::new() })
        };
        let member =
            |id: &GroupId| FamilyMember { id: *id, versions: STATES.map(|it| version(*id, it)) };
        Self { members: ids.iter().map(member).collect() }
    }

    /// Returns all groups, in the order of their identities.
    pub(super) fn members(&self) -> &[FamilyMember<'a>] {
        &self.members
    }

    /// Returns where a group is.
    pub(super) fn find(&self, id: GroupId) -> Option<MemberIndex> {
        self.members.binary_search_by_key(&id, |it| it.id).ok()
    }
}

impl<'a> FamilyMember<'a> {
    /// Returns the group as one of the states has it.
    pub(super) fn version(&self, version: StateVersion) -> Option<&MemberVersion<'a>> {
        let [base, head] = &self.versions;
        match version {
            StateVersion::Base => base.as_ref(),
            StateVersion::Head => head.as_ref(),
        }
    }
}

impl MemberVersion<'_> {
    /// Returns what its rule says of the node.
    pub(super) fn truth(&self, node: &Node) -> &Truth {
        self.truth.get_or_init(|| Some(evaluate(self.group.rule.as_ref()?, node)))
    }

    /// Notes that its rule holds for the node.
    pub(super) fn note_that_it_holds(&self) {
        // Known already, it is the same.
        let _is_known = self.truth.set(Some(Ok(true)));
    }
}
