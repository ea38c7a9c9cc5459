//! Building the tree, and finding out why it cannot be built.

use std::borrow::Borrow;
use std::sync::{Arc, LazyLock};

use hashbrown::HashMap;

use super::name_digest::NameDigest;
use super::{GroupIndex, Hierarchy, HierarchyFault, Lineage, Link, RootFault};
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
    pub(crate) fn of_checked<G>(mut groups: Vec<G>) -> Self
    where
        G: Borrow<Group> + From<Group> + Into<Arc<Group>>,
    {
        if !groups.iter().any(|group| group.borrow().id == GroupId::ROOT) {
            groups.extend(root_group().map(G::from));
        }
        Self::arrange(groups)
    }

    /// Puts groups, of which each but the root has its parent among them, in preorder.
    fn arrange<G: Borrow<Group> + Into<Arc<Group>>>(groups: Vec<G>) -> Self {
        let count = groups.len();
        let numbers: HashMap<GroupId, usize> =
            groups.iter().enumerate().map(|(number, group)| (group.borrow().id, number)).collect();
        let parent = |group: &Group| match group.id {
            GroupId::ROOT => count,
            _ => numbers.get(&group.parent).copied().unwrap_or(count),
        };
        // Siblings stand together and in order; above the root there is one more place.
        let mut waiting: Vec<(usize, Arc<Group>)> =
            groups.into_iter().map(|group| (parent(group.borrow()), group.into())).collect();
        let mut starts = vec![0; count + 2];
        for (parent, _) in &waiting {
            if let Some(start) = starts.get_mut(parent + 1) {
                *start += 1;
            }
        }
        for at in 1..starts.len() {
            let before = starts.get(at - 1).copied().unwrap_or(0);
            if let Some(start) = starts.get_mut(at) {
                *start += before;
            }
        }
        waiting.sort_unstable_by(|(a, left), (b, right)| (a, order(left)).cmp(&(b, order(right))));
        let children = |number: usize| match starts.get(number..number + 2) {
            Some([start, end]) => *start..*end,
            _ => 0..0,
        };
        let mut links: Vec<Link> = Vec::with_capacity(count);
        let mut ordered: Vec<Arc<Group>> = Vec::with_capacity(count);
        let mut by_id = HashMap::with_capacity(count);
        let mut open = vec![(GroupIndex(0), children(count))];
        while let Some((parent, rest)) = open.last_mut() {
            let index = GroupIndex(u32::try_from(ordered.len()).unwrap_or(u32::MAX));
            let Some((_, group)) = rest.next().and_then(|at| waiting.get(at)) else {
                if let Some(link) = links.get_mut(parent.0 as usize) {
                    link.end = index;
                }
                open.pop();
                continue;
            };
            links.push(Link { parent: *parent, end: index });
            by_id.insert(group.id, index);
            ordered.push(Arc::clone(group));
            open.push((index, numbers.get(&group.id).map_or(0..0, |it| children(*it))));
        }
        let shape = Lineage { links: links.into(), by_id };
        let names = ordered.iter().map(|it| NameDigest::of(it.name.as_str())).collect();
        Self { groups: ordered.into_iter().collect(), names, shape: Arc::new(shape) }
    }
}

/// The order of siblings.
pub(super) fn order(group: &Group) -> (&GroupName, &EnvironmentName, GroupId) {
    (&group.name, &group.environment, group.id)
}

/// Returns the root group that every repository has without writing it.
///
/// `None` never happens: the names are valid.
pub fn root_group() -> Option<Group> {
    // Every file asks for it, and its pattern is one that all would wait for.
    static ROOT: LazyLock<Option<Group>> = LazyLock::new(made_root_group);
    ROOT.clone()
}

fn made_root_group() -> Option<Group> {
    Some(Group {
        id: GroupId::ROOT,
        name: GroupName::ROOT.parse().ok()?,
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
    faults.extend(second_root(&by_id, &by_name));
    for (place, group) in groups.iter().enumerate() {
        if group.id == GroupId::ROOT {
            let of_root = root_faults(group);
            faults.extend(of_root.map(|fault| HierarchyFault::Root { group: place, fault }));
        } else if group.parent != GroupId::ROOT && !by_id.contains_key(&group.parent) {
            faults.push(HierarchyFault::MissingParent { group: place });
        }
    }
    faults.extend(cycles(groups, &by_id));
    faults
}

/// Finds the group that has the name of a root group which is not among the groups, and is added.
fn second_root(
    by_id: &HashMap<GroupId, usize>,
    by_name: &HashMap<(&EnvironmentName, &GroupName), usize>,
) -> Option<HierarchyFault> {
    let root = root_group().filter(|root| !by_id.contains_key(&root.id))?;
    let group = *by_name.get(&(&root.environment, &root.name))?;
    Some(HierarchyFault::Root { group, fault: RootFault::Name })
}

fn root_faults(root: &Group) -> impl Iterator<Item = RootFault> {
    let has_parent = root.parent != GroupId::ROOT;
    let everything = |condition: &Condition| {
        matches!(condition, Condition::Test(Test { path: Path::Name, comparison: Comparison::Finds(pattern) })
            if pattern.as_str() == ".*")
    };
    let allowed = match root.rule.as_deref() {
        Some(Condition::And(terms)) => matches!(terms.as_slice(), [only] if everything(only)),
        Some(rule) => everything(rule),
        None => false,
    };
    let parent = has_parent.then_some(RootFault::Parent);
    parent.into_iter().chain((!allowed).then_some(RootFault::Rule))
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
