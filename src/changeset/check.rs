//! The checks whose answers the API promises; validation finds everything else.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use hashbrown::{HashMap, HashSet};
use serde_json::{Value, json};

use super::body::{SHOWN_PROBLEMS, read_group};
use super::context::WriteContext;
use super::group_changes::GroupChanges;
use super::rejection::{Rejection, RejectionKind};
use crate::hierarchy::{
    Estate, GroupIndex, Hierarchy, HierarchyFault, RootFault, check, group_to_value, has_parameter,
};
use crate::model::{Group, GroupId};
use crate::validation::Strictness;
use crate::wording::counted;

/// Checks a group against the others: its parent, its name.
pub(super) fn check_group(group: &Group, estate: &Estate) -> Result<(), Rejection> {
    let hierarchy = &estate.hierarchy;
    let is_own = group.parent == group.id && group.id != GroupId::ROOT;
    let parent = match hierarchy.find(group.parent) {
        Some(parent) => parent,
        None if is_own => return Err(cycle(&[group])),
        None => {
            let message = format!("The parent group {} does not exist.", group.parent);
            return Err(Rejection::new(
                RejectionKind::MissingParent,
                message,
                group_to_value(group),
            ));
        }
    };
    if let Some(index) = hierarchy.find(group.id)
        && (index == parent || hierarchy.is_ancestor(index, parent))
        && group.id != GroupId::ROOT
    {
        let way = hierarchy.lineage(parent).take_while(|it| *it != index);
        let between = way.map(|it| hierarchy.group(it));
        let all: Vec<&Group> = std::iter::once(group).chain(between).collect();
        return Err(cycle(&all));
    }
    let twin = hierarchy.groups().find(|it| {
        it.id != group.id && it.name == group.name && it.environment == group.environment
    });
    twin.map_or(Ok(()), |_| Err(not_unique(group)))
}

fn not_unique(group: &Group) -> Rejection {
    let message = format!(
        "Could not complete the request because it violates a group uniqueness constraint. \
         A group with name = {}, environment_name = {} already exists.",
        group.name, group.environment
    );
    let details = json!({
        "conflict": {"name": group.name, "environment_name": group.environment},
        "constraintName": "groups_name_environment_name_idx",
    });
    Rejection::new(RejectionKind::UniquenessViolation, message, details)
}

fn cycle(groups: &[&Group]) -> Rejection {
    let names: Vec<String> =
        groups.iter().chain(groups.first()).map(|it| it.name.to_string()).collect();
    let message = format!(
        "Detected group inheritance cycle: {}. See the `details` key for the full groups of the cycle.",
        names.join(" -> ")
    );
    let groups: Vec<Value> = groups.iter().map(|it| group_to_value(it)).collect();
    Rejection::new(RejectionKind::InheritanceCycle, message, groups)
}

/// Builds the tree of all groups after a write.
pub(super) fn build(old: &Hierarchy, changes: &GroupChanges) -> Result<Hierarchy, Rejection> {
    let whole = || {
        let groups = changes.all(old);
        Hierarchy::build(groups.clone()).map_err(|faults| explain(&groups, &faults))
    };
    changes.tree(old).map_or_else(whole, Ok)
}

fn explain(groups: &[Group], faults: &[HierarchyFault]) -> Rejection {
    let at = |place: &usize| groups.get(*place);
    let first = faults.iter().find_map(|fault| match fault {
        HierarchyFault::DuplicateId { second, .. } => at(second).map(|group| {
            let message = format!(
                "Could not complete the request because it violates a group uniqueness constraint. \
                 A group with id = {} already exists.",
                group.id
            );
            let details = json!({"conflict": {"id": group.id}, "constraintName": "groups_pkey"});
            Rejection::new(RejectionKind::UniquenessViolation, message, details)
        }),
        HierarchyFault::DuplicateName { second, .. } => at(second).map(not_unique),
        HierarchyFault::Cycle { groups } => {
            Some(cycle(&groups.iter().filter_map(at).collect::<Vec<_>>()))
        }
        HierarchyFault::MissingParent { group } => at(group).map(|group| {
            let message = format!("The parent group {} does not exist.", group.parent);
            Rejection::new(RejectionKind::MissingParent, message, group_to_value(group))
        }),
        HierarchyFault::Root { fault, group } => at(group).map(|group| match fault {
            RootFault::Rule => Rejection::root_rule(group_to_value(group)),
            RootFault::Parent => Rejection::root_parent(group_to_value(group)),
            RootFault::Name => not_unique(group),
        }),
    });
    first.unwrap_or_else(|| {
        Rejection::new(RejectionKind::RootGroup, "The groups do not form a tree.", Value::Null)
    })
}

/// Reads the groups of a whole hierarchy. Of entries that do not conform, of which there can be 199,999, the first are
/// shown.
fn read_entries(entries: &[Value]) -> Result<Vec<Group>, Rejection> {
    let mut groups = Vec::new();
    let (mut bad, mut errors) = (Vec::new(), Vec::new());
    let mut has_more = false;
    for entry in entries {
        let refused =
            |error: &str| Err(Rejection::schema_violation(entry.clone(), "Group", error.into()));
        let read = match entry.get("id") {
            Some(Value::Null) => refused("([:id (not (string? nil))])"),
            Some(_) => read_group(entry),
            None => refused("([:id missing-required-key])"),
        };
        match read {
            Ok(group) => groups.push(group),
            Err(_) if bad.len() == SHOWN_PROBLEMS => {
                has_more = true;
                break;
            }
            Err(rejection) => {
                let error = rejection.details.get("error").cloned();
                errors.push(error.unwrap_or_else(|| rejection.message.into()));
                bad.push(entry.clone());
            }
        }
    }
    if !bad.is_empty() {
        let mut rejection = Rejection::schema_violation(bad.into(), "[Group]", errors.into());
        if has_more {
            write!(rejection.message, " (the first {SHOWN_PROBLEMS} are shown)").ok();
        }
        return Err(rejection);
    }
    Ok(groups)
}

/// Reads and checks the groups of a whole hierarchy.
pub(super) fn import(body: &Value) -> Result<Vec<Group>, Rejection> {
    let Value::Array(entries) = body else {
        let error = Value::from("(not (sequential? the-body))");
        return Err(Rejection::schema_violation(body.clone(), "[Group]", error));
    };
    let groups = read_entries(entries)?;
    let faults = check(&groups);
    let severe: Vec<HierarchyFault> = faults
        .into_iter()
        .filter(|it| !matches!(it, HierarchyFault::MissingParent { .. }))
        .collect();
    if !severe.is_empty() {
        return Err(explain(&groups, &severe));
    }
    // An empty list must not empty the repository.
    if groups.is_empty() {
        let message =
            "The submitted hierarchy has no groups: it must have the root group at least.";
        return Err(Rejection::new(
            RejectionKind::UnreachableGroups,
            message,
            Value::Array(Vec::new()),
        ));
    }
    let unreachable = unreachable(&groups);
    if unreachable.is_empty() {
        return Ok(groups);
    }
    let message = format!(
        "The submitted hierarchy has {} that cannot be reached from the root group.",
        counted(unreachable.len(), "group")
    );
    let details: Vec<Value> = unreachable.into_iter().map(group_to_value).collect();
    Err(Rejection::new(RejectionKind::UnreachableGroups, message, details))
}

/// Returns the groups from which no way leads to the root group; there are no cycles.
fn unreachable(groups: &[Group]) -> Vec<&Group> {
    let parents: HashMap<GroupId, GroupId> = groups.iter().map(|it| (it.id, it.parent)).collect();
    // Where the ways of the groups lead that were followed before: a chain of all groups is followed once.
    let mut reaching: HashMap<GroupId, bool> = HashMap::new();
    reaching.insert(GroupId::ROOT, parents.contains_key(&GroupId::ROOT));
    for group in groups {
        let (mut way, mut next) = (Vec::new(), group.id);
        let reaches = loop {
            if let Some(known) = reaching.get(&next) {
                break *known;
            }
            way.push(next);
            match parents.get(&next) {
                Some(parent) => next = *parent,
                None => break false,
            }
        };
        reaching.extend(way.into_iter().map(|it| (it, reaches)));
    }
    groups.iter().filter(|it| reaching.get(&it.id) != Some(&true)).collect()
}

/// Refuses classes and parameters that the catalogues do not have, in the groups that change and
/// all below them.
pub(super) fn referents(
    context: &WriteContext<'_>,
    changes: &GroupChanges,
    new: &Hierarchy,
) -> Result<(), Rejection> {
    if context.layout.policy.missing_referents != Strictness::Error
        || context.estate.catalogues.is_empty()
    {
        return Ok(());
    }
    let changed = changes.written.iter().filter_map(|it| new.find(it.id));
    let affected: BTreeSet<GroupIndex> = changed.flat_map(|it| new.subtree(it)).collect();
    let missing = affected.into_iter().flat_map(|index| {
        let definers = new.lineage(index).map(|it| new.group(it));
        missing(context.estate, new.group(index), definers)
    });
    refuse(missing.collect())
}

fn refuse(missing: Vec<Value>) -> Result<(), Rejection> {
    if missing.is_empty() {
        return Ok(());
    }
    // Each descendant that inherits a class lacks it as well: the details name them all.
    let all = missing.iter().filter_map(|it| it.get("missing")).map(ToString::to_string);
    let mut known = HashSet::new();
    let names: Vec<String> = all.filter(|it| known.insert(it.clone())).collect();
    let message = format!(
        "The group being edited or created makes reference to the following missing classes or parameters: {}. \
         See the `details` key for all of them.",
        names.join(", ")
    );
    Err(Rejection::new(RejectionKind::MissingReferents, message, missing))
}

/// Returns the classes and parameters that a group has of the definers, the nearest first, and the
/// catalogue of its environment has not.
fn missing<'g>(
    estate: &Estate,
    group: &Group,
    definers: impl Iterator<Item = &'g Group>,
) -> Vec<Value> {
    let Some(catalogue) = estate.catalogues.get(&group.environment) else { return Vec::new() };
    let mut missing = Vec::new();
    // A null removes an inherited value, which needs no parameter.
    let mut removed = BTreeSet::new();
    for definer in definers {
        let entry = |kind: &str, missing: Value| {
            json!({
                "kind": kind,
                "missing": missing,
                "environment": group.environment,
                "group": group.name,
                "defined_by": definer.name,
            })
        };
        for (class, parameters) in definer.classes.as_ref() {
            match catalogue.classes.get(class) {
                None => missing.push(entry("missing-class", json!(class))),
                Some(known) => {
                    for (key, value) in parameters {
                        if value.is_null() {
                            removed.insert((class, key));
                        } else if !has_parameter(known, key) && !removed.contains(&(class, key)) {
                            missing.push(entry("missing-parameter", json!([class, key])));
                        }
                    }
                }
            }
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(number: u128, parent: u128) -> Group {
        let id = |number| if number == 0 { GroupId::ROOT } else { GroupId::from_random(number) };
        let root = crate::hierarchy::root_group().unwrap();
        Group { id: id(number), parent: id(parent), ..root }
    }

    /// The way up from each group was followed to its end: 60,000 groups in a chain took minutes.
    #[test]
    fn a_long_chain_reaches_the_root_group_or_does_not() {
        let count = 60_000;
        let chain = |top: u128| -> Vec<Group> {
            (1..count).map(|it| group(it, if it == 1 { top } else { it - 1 })).collect()
        };
        let with_root = |mut groups: Vec<Group>| {
            groups.push(group(0, 0));
            groups
        };
        assert!(unreachable(&with_root(chain(0))).is_empty());
        assert_eq!(unreachable(&chain(0)).len(), chain(0).len());
        let lost = with_root(chain(count));
        let found: Vec<GroupId> = unreachable(&lost).iter().map(|it| it.id).collect();
        assert!(found.iter().eq(lost.iter().map(|it| &it.id).take(lost.len() - 1)));
        let mixed = [group(0, 0), group(1, 2), group(2, 0), group(3, 4), group(4, 9)];
        let found: Vec<GroupId> = unreachable(&mixed).iter().map(|it| it.id).collect();
        assert_eq!(found, [mixed[3].id, mixed[4].id]);
    }

    #[test]
    fn of_many_entries_that_do_not_conform_the_first_are_shown() {
        let sound =
            json!({"id": GroupId::ROOT, "name": "A", "parent": GroupId::ROOT, "classes": {}});
        for (count, shown) in [(3, 3), (100, 100), (101, 100), (199_999, 100)] {
            let mut entries = vec![json!({"": 0}); count];
            entries.insert(1, sound.clone());
            let rejection = import(&entries.into()).unwrap_err();
            assert_eq!(rejection.kind, RejectionKind::SchemaViolation);
            for list in ["submitted", "error"] {
                assert_eq!(rejection.details[list].as_array().unwrap().len(), shown, "{list}");
            }
            let says_so = rejection.message.ends_with("] (the first 100 are shown)");
            assert_eq!(says_so, count > 100, "{count}: {}", rejection.message);
        }
    }
}
