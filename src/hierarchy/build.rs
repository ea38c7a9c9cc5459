//! Building the tree, and finding out why it cannot be built.

use std::sync::Arc;

use hashbrown::HashMap;

use super::{GroupIndex, Hierarchy, HierarchyFault, Member};
use crate::model::{Comparison, Condition, EnvironmentName, Group, GroupId, GroupName, Path, Test};
use crate::rule;

impl Hierarchy {
    /// Builds the tree; adds the root group if the groups do not have it.
    ///
    /// # Errors
    ///
    /// Returns what [`check`] finds.
    pub fn build(groups: Vec<Group>) -> Result<Self, Vec<HierarchyFault>> {
        let faults = check(&groups);
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self::of_checked(groups))
    }

    /// Builds the tree of groups in which [`check`] finds nothing; adds the root group if they do
    /// not have it.
    pub(crate) fn of_checked(mut groups: Vec<Group>) -> Self {
        if !groups.iter().any(|group| group.id == GroupId::ROOT) {
            groups.extend(root_group());
        }
        Self::arrange(groups)
    }

    /// Puts groups, of which each but the root has its parent among them, in preorder.
    fn arrange(groups: Vec<Group>) -> Self {
        let mut children: HashMap<GroupId, Vec<Group>> = HashMap::new();
        let mut root = Vec::new();
        for group in groups {
            if group.id == GroupId::ROOT {
                root.push(group);
            } else {
                children.entry(group.parent).or_default().push(group);
            }
        }
        let mut hierarchy = Self { members: Vec::new(), by_id: HashMap::new() };
        let mut open: Vec<(GroupIndex, Vec<Group>)> = vec![(GroupIndex(0), root)];
        while let Some((parent, rest)) = open.last_mut() {
            let parent = *parent;
            let Some(group) = rest.pop() else {
                let end = hierarchy.next();
                if let Some(member) = hierarchy.members.get_mut(parent.0 as usize) {
                    member.end = end;
                }
                open.pop();
                continue;
            };
            let index = hierarchy.next();
            let mut below = children.remove(&group.id).unwrap_or_default();
            // The last is taken first.
            below.sort_by(|a, b| order(b).cmp(&order(a)));
            hierarchy.by_id.insert(group.id, index);
            hierarchy.members.push(Member { group, parent, end: index });
            open.push((index, below));
        }
        hierarchy
    }

    fn next(&self) -> GroupIndex {
        GroupIndex(u32::try_from(self.members.len()).unwrap_or(u32::MAX))
    }
}

/// The order of siblings.
fn order(group: &Group) -> (&GroupName, &EnvironmentName, GroupId) {
    (&group.name, &group.environment, group.id)
}

/// Returns the root group that every repository has without writing it.
///
/// `None` never happens: the names are valid.
pub fn root_group() -> Option<Group> {
    Some(Group {
        id: GroupId::ROOT,
        name: "All Nodes".parse().ok()?,
        parent: GroupId::ROOT,
        environment: "production".parse().ok()?,
        environment_trumps: false,
        description: None,
        rule: rule::read(&serde_json::json!(["~", "name", ".*"])).ok().map(Arc::new),
        classes: Arc::default(),
        variables: Arc::default(),
        config_data: Arc::default(),
    })
}

/// Returns every fault among the groups; a cycle is reported once, and groups below a missing
/// parent are not reported for that.
pub fn check(groups: &[Group]) -> Vec<HierarchyFault> {
    let mut faults = Vec::new();
    let mut by_id: HashMap<GroupId, usize> = HashMap::new();
    let mut by_name: HashMap<(&EnvironmentName, &GroupName), usize> = HashMap::new();
    for (place, group) in groups.iter().enumerate() {
        let first = *by_id.entry(group.id).or_insert(place);
        if first != place {
            faults.push(HierarchyFault::DuplicateId { first, second: place });
        }
        let first_name = *by_name.entry((&group.environment, &group.name)).or_insert(place);
        // Without ids of their own, groups of one name have one id, which is one fault.
        if first_name != place && first == place {
            faults.push(HierarchyFault::DuplicateName { first: first_name, second: place });
        }
    }
    for (place, group) in groups.iter().enumerate() {
        if group.id == GroupId::ROOT {
            faults.extend(
                root_fault(group).map(|reason| HierarchyFault::Root { group: place, reason }),
            );
        } else if group.parent != GroupId::ROOT && !by_id.contains_key(&group.parent) {
            faults.push(HierarchyFault::MissingParent { group: place });
        }
    }
    faults.extend(cycles(groups, &by_id));
    faults
}

fn root_fault(root: &Group) -> Option<&'static str> {
    if root.parent != GroupId::ROOT {
        return Some("the root group is its own parent");
    }
    let everything = |condition: &Condition| {
        matches!(condition, Condition::Test(Test { path: Path::Name, comparison: Comparison::Finds(pattern) })
            if pattern.as_str() == ".*")
    };
    let allowed = match root.rule.as_deref() {
        Some(Condition::And(terms)) => matches!(terms.as_slice(), [only] if everything(only)),
        Some(rule) => everything(rule),
        None => false,
    };
    (!allowed).then_some("the rule of the root group cannot be changed")
}

/// Finds every cycle once, in time proportional to the number of groups.
fn cycles(groups: &[Group], by_id: &HashMap<GroupId, usize>) -> Vec<HierarchyFault> {
    let parent = |place: usize| -> Option<usize> {
        let group = groups.get(place).filter(|group| group.id != GroupId::ROOT)?;
        by_id.get(&group.parent).copied()
    };
    // The walk that came by each group first, counted from 1.
    let mut walks: Vec<usize> = vec![0; groups.len()];
    let mut faults = Vec::new();
    for start in 0..groups.len() {
        let walk = start + 1;
        let mut next = Some(start);
        while let Some(place) = next {
            let Some(before) = walks.get_mut(place) else { break };
            if *before == walk {
                faults.push(cycle(place, parent));
            }
            if *before != 0 {
                break;
            }
            *before = walk;
            next = parent(place);
        }
    }
    faults
}

/// Returns the cycle that a group is on, from its first member.
fn cycle(on_it: usize, parent: impl Fn(usize) -> Option<usize>) -> HierarchyFault {
    let around = std::iter::successors(parent(on_it), |place| parent(*place));
    let mut cycle: Vec<usize> = around.take_while(|place| *place != on_it).collect();
    cycle.insert(0, on_it);
    let first = cycle.iter().enumerate().min_by_key(|(_, place)| **place);
    let first = first.map_or(0, |(at, _)| at);
    cycle.rotate_left(first);
    HierarchyFault::Cycle { groups: cycle }
}
