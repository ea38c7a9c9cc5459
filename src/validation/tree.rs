//! The groups of all files as one tree.

use std::collections::{BTreeSet, HashSet};

use super::group::GroupFile;
use super::parents::{self, WrittenIds};
use crate::diagnostic::{Diagnostic, Kind};
use crate::hierarchy::{Hierarchy, HierarchyFault, RootFault, check};
use crate::model::{Group, GroupId};

/// Builds the tree of the valid groups and says what is wrong among them; where there are errors it
/// is only good for further checks.
pub(super) fn build(files: &[&GroupFile], diagnostics: &mut Vec<Diagnostic>) -> Option<Hierarchy> {
    let parents = parents::resolve(files, diagnostics);
    let mut members: Vec<&GroupFile> = Vec::new();
    let mut groups: Vec<Group> = Vec::new();
    for (file, parent) in files.iter().zip(parents) {
        if let Some(group) = file.group() {
            let parent = parent.unwrap_or(GroupId::ROOT);
            members.push(file);
            groups.push(Group { parent, ..group.clone() });
        }
    }
    let faults = check(&groups);
    let ids = groups.iter().filter(|_| !faults.is_empty()).map(|group| group.id);
    let valid: HashSet<GroupId> = ids.collect();
    let mut written = (!faults.is_empty()).then(|| WrittenIds::of(files));
    for fault in &faults {
        if let HierarchyFault::MissingParent { group } = fault {
            // Names were resolved before; an id that is missing here is that of a group that has
            // errors of its own, or of one that is missing itself.
            let resolved = groups.get(*group).map(|it| it.parent);
            if let (Some(file), Some(parent), Some(written)) =
                (members.get(*group), resolved, &mut written)
            {
                written.check(file, parent, &valid, diagnostics);
            }
        } else {
            diagnostics.extend(report(fault, &members));
        }
    }
    match faults.as_slice() {
        [] => Some(Hierarchy::of_checked(groups)),
        faults => Hierarchy::build(mend(groups, faults)).ok(),
    }
}

/// Takes the faults out of the groups, so that the rest can be checked: what has no place in the
/// tree is put below the root group.
fn mend(mut groups: Vec<Group>, faults: &[HierarchyFault]) -> Vec<Group> {
    let mut surplus: BTreeSet<usize> = BTreeSet::new();
    for fault in faults {
        match fault {
            HierarchyFault::DuplicateId { second, .. }
            | HierarchyFault::DuplicateName { second, .. } => {
                surplus.insert(*second);
            }
            HierarchyFault::Root { group, .. } => {
                surplus.insert(*group);
            }
            HierarchyFault::MissingParent { group } => move_to_top(&mut groups, *group),
            HierarchyFault::Cycle { groups: cycle } => {
                for group in cycle {
                    move_to_top(&mut groups, *group);
                }
            }
        }
    }
    let kept = groups.into_iter().enumerate().filter(|(at, _)| !surplus.contains(at));
    let mut kept: Vec<Group> = kept.map(|(_, group)| group).collect();
    let ids: HashSet<GroupId> = kept.iter().map(|group| group.id).collect();
    for group in &mut kept {
        if !ids.contains(&group.parent) {
            group.parent = GroupId::ROOT;
        }
    }
    kept
}

fn move_to_top(groups: &mut [Group], at: usize) {
    if let Some(group) = groups.get_mut(at) {
        group.parent = GroupId::ROOT;
    }
}

fn report(fault: &HierarchyFault, members: &[&GroupFile]) -> Option<Diagnostic> {
    let at = |at: &usize| members.get(*at).copied();
    match fault {
        HierarchyFault::DuplicateId { first, second } => duplicate_id(at(first)?, at(second)?),
        HierarchyFault::DuplicateName { first, second } => duplicate_name(at(first)?, at(second)?),
        HierarchyFault::Cycle { groups } => {
            cycle(&groups.iter().map(at).collect::<Option<Vec<_>>>()?)
        }
        HierarchyFault::Root { group, fault } => root(at(group)?, *fault),
        HierarchyFault::MissingParent { .. } => None,
    }
}

/// Starts a diagnostic at the name of a group.
fn diagnostic(kind: Kind, file: &GroupFile, message: String) -> Option<Diagnostic> {
    let name = file.name()?;
    Some(Diagnostic::new(kind, file.place(), message).in_group(name.to_string()))
}

fn duplicate_id(first: &GroupFile, second: &GroupFile) -> Option<Diagnostic> {
    let environment = |it: &GroupFile| Some(it.group()?.environment.clone());
    let has_same_name =
        first.name() == second.name() && environment(first)? == environment(second)?;
    // An id that is not written follows from the name.
    let is_implied = second.id_place().is_none();
    if is_implied && has_same_name {
        return duplicate_name(first, second);
    }
    let id = second.id()?;
    let (message, help) = if is_implied {
        let message = format!("the id `{id}` of this name is that of another group");
        (message, "write another `id` into one of the groups")
    } else {
        let message = format!("the id `{id}` is that of another group");
        (message, "give one of the groups another id, or leave it out")
    };
    let mut found = diagnostic(Kind::UniquenessViolation, second, message)?;
    let at = |it: &GroupFile| it.id_place().unwrap_or_else(|| it.place());
    found.place = at(second);
    Some(found.with_help(help).with_related(at(first), "first used here"))
}

fn duplicate_name(first: &GroupFile, second: &GroupFile) -> Option<Diagnostic> {
    let group = second.group()?;
    let message =
        format!("the environment `{}` has a second group `{}`", group.environment, group.name);
    let found = diagnostic(Kind::UniquenessViolation, second, message)?;
    let help = "a name must be unique within its environment: rename one of them";
    Some(found.with_help(help).with_related(first.place(), "first used here"))
}

fn cycle(groups: &[&GroupFile]) -> Option<Diagnostic> {
    let first = *groups.first()?;
    let path: Vec<String> = groups
        .iter()
        .chain(groups.first())
        .filter_map(|it| it.name().map(ToString::to_string))
        .collect();
    let message = match groups {
        [_] => "the group is its own parent".to_owned(),
        _ => format!("inheritance cycle: `{}`", path.join("` -> `")),
    };
    let mut found = diagnostic(Kind::InheritanceCycle, first, message)?
        .with_help("give one of them a parent that is not below it");
    found.place = first.parent_place().unwrap_or(found.place);
    for file in groups.iter().skip(1) {
        found = found.with_related(file.parent_place()?, "which has this parent");
    }
    Some(found)
}

fn root(file: &GroupFile, fault: RootFault) -> Option<Diagnostic> {
    let mut found = diagnostic(Kind::RootGroup, file, fault.to_string())?;
    let (place, help) = match fault {
        RootFault::Rule => {
            (file.rule_place(), "leave `rule` out, or write [\"~\", \"name\", \".*\"]")
        }
        RootFault::Parent => (file.parent_place(), "leave `parent` out"),
        RootFault::Name => {
            let help =
                "leave `id` and `parent` out if it is meant to be the root group, or rename it";
            (file.id_place().or_else(|| file.parent_place()), help)
        }
    };
    found.place = place.unwrap_or(found.place);
    Some(found.with_help(help))
}
