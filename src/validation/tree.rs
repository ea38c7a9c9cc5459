//! The groups of all files as one tree.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::group::{GroupFile, ParentName};
use super::incomplete::IncompleteGroups;
use super::parents::{self, KnownGroups};
use crate::diagnostic::{Diagnostic, Kind};
use crate::hierarchy::{Hierarchy, HierarchyFault, RootFault, check, root_group};
use crate::model::{Group, GroupId, GroupName};

/// The tree of the groups of all files.
pub(super) struct BuiltTree {
    /// The tree; where there are errors it is only good for further checks.
    pub(super) hierarchy: Option<Hierarchy>,
    /// Whether every group is valid by itself.
    pub(super) is_valid: bool,
    /// The groups in it of which something is not known.
    pub(super) incomplete: IncompleteGroups,
}

/// Builds the tree of the groups, also of those with errors, and says what is wrong among them. Where there are errors,
/// the groups come with the ids that they have in the tree.
pub(super) fn build<'r>(
    files: &[&'r GroupFile],
    known: KnownGroups,
    diagnostics: &mut Vec<Diagnostic>,
) -> (BuiltTree, Vec<(GroupId, &'r GroupFile)>) {
    let parents = parents::resolve(files, known, diagnostics);
    let mut members: Vec<&GroupFile> = Vec::new();
    let mut groups: Vec<Group> = Vec::new();
    let mut at_top = Vec::new();
    for (file, parent) in files.iter().zip(parents) {
        if let Some(group) = file.checked_group() {
            at_top.extend(parent.is_none().then_some(groups.len()));
            let parent = parent.unwrap_or(GroupId::ROOT);
            members.push(file);
            groups.push(Group { parent, ..group.clone() });
        }
    }
    let faults = faults(&members, &mut groups);
    let ids = groups.iter().filter(|_| !faults.is_empty()).map(|group| group.id);
    let valid: HashSet<GroupId> = ids.collect();
    let mut orphans = Vec::new();
    for fault in &faults {
        if let HierarchyFault::MissingParent { group } = fault {
            // Names were resolved before; an id that is missing here is that of a group without a name, or of one
            // that is missing itself.
            let resolved = groups.get(*group).map(|it| it.parent);
            orphans.extend(members.get(*group).copied().zip(resolved));
        } else {
            diagnostics.extend(report(fault, &members));
        }
    }
    parents::check_ids(files, &orphans, (&valid, known), diagnostics);
    let (is_valid, mut faulty) = (files.iter().all(|it| it.is_valid()), Vec::new());
    if !is_valid || !faults.is_empty() {
        faulty.extend(groups.iter().map(|it| it.id).zip(members.iter().copied()));
    }
    at_top.extend(faults.iter().flat_map(without_place));
    let incomplete = match is_valid && at_top.is_empty() {
        true => IncompleteGroups::default(),
        false => incomplete(&members, &groups, &at_top),
    };
    let hierarchy = match faults.as_slice() {
        [] => Some(Hierarchy::of_checked(groups)),
        faults => mended(groups, faults),
    };
    (BuiltTree { hierarchy, is_valid, incomplete }, faulty)
}

/// Returns the groups that have no place in the tree for a fault.
fn without_place(fault: &HierarchyFault) -> &[usize] {
    match fault {
        HierarchyFault::MissingParent { group } => std::slice::from_ref(group),
        HierarchyFault::Cycle { groups } => groups,
        _ => &[],
    }
}

/// Returns the groups of which something is not known; `at_top` are those that are below the root group for want of
/// another parent.
fn incomplete(members: &[&GroupFile], groups: &[Group], at_top: &[usize]) -> IncompleteGroups {
    let without = |keys: &[&str]| -> BTreeSet<GroupId> {
        let lack = |it: &GroupFile| {
            it.partial().is_some_and(|it| keys.iter().any(|key| it.is_unknown(key)))
        };
        let all = members.iter().zip(groups);
        all.filter(|(file, _)| lack(file)).map(|(_, group)| group.id).collect()
    };
    let mut parents = without(&["parent"]);
    parents.extend(at_top.iter().filter_map(|it| groups.get(*it)).map(|it| it.id));
    IncompleteGroups {
        pins: without(&["pinned"]),
        classes: without(&["classes"]),
        values: without(&["classes", "variables", "config_data"]),
        parents,
    }
}

/// Finds what is wrong among groups. The second group of an id gets another one, so that it can be checked, too.
fn faults(members: &[&GroupFile], groups: &mut [Group]) -> Vec<HierarchyFault> {
    let mut found = check(groups);
    let pair = |it: &HierarchyFault| match it {
        HierarchyFault::DuplicateId { first, second } => Some((*first, *second)),
        _ => None,
    };
    let pairs: BTreeSet<(usize, usize)> = found.iter().filter_map(pair).collect();
    if pairs.is_empty() {
        return found;
    }
    separate(members, groups, pairs.iter().map(|(_, second)| *second));
    found.retain(|it| pair(it).is_some());
    // That two groups of one id have one name, too, is the same fault.
    let is_new = |it: &HierarchyFault| match it {
        HierarchyFault::DuplicateName { first, second } => !pairs.contains(&(*first, *second)),
        _ => true,
    };
    found.extend(check(groups).into_iter().filter(is_new));
    found
}

/// Gives groups other ids, also as the parents of those that name them.
fn separate(members: &[&GroupFile], groups: &mut [Group], which: impl Iterator<Item = usize>) {
    let mut own: HashMap<(GroupId, GroupName), GroupId> = HashMap::new();
    for at in which {
        if let (Some(file), Some(group)) = (members.get(at), groups.get_mut(at)) {
            let place = file.place();
            let id = GroupId::of_document(&place.file, place.span.start.offset);
            own.insert((group.id, group.name.clone()), id);
            group.id = id;
        }
    }
    for (file, group) in members.iter().zip(groups) {
        // A name that several groups have names none of them.
        if let Some(ParentName::Name(name)) = &file.parent
            && let Ok(name) = name.parse()
            && let Some(id) = own.get(&(group.parent, name))
        {
            group.parent = *id;
        }
    }
}

/// Takes the faults out of the groups and builds the tree, so that the rest can be checked: what has no place in the
/// tree is put below the root group.
fn mended(mut groups: Vec<Group>, faults: &[HierarchyFault]) -> Option<Hierarchy> {
    for fault in faults {
        match fault {
            HierarchyFault::DuplicateId { .. } | HierarchyFault::DuplicateName { .. } => {}
            HierarchyFault::Root { group, fault } => mend_root(groups.get_mut(*group)?, *fault)?,
            HierarchyFault::MissingParent { group } => move_to_top(&mut groups, *group),
            HierarchyFault::Cycle { groups: cycle } => {
                for group in cycle {
                    move_to_top(&mut groups, *group);
                }
            }
        }
    }
    // That groups share a name is a fault, but they have places of their own.
    let fits = |it: &HierarchyFault| {
        let is_name = matches!(it, HierarchyFault::Root { fault: RootFault::Name, .. });
        is_name || matches!(it, HierarchyFault::DuplicateName { .. })
    };
    check(&groups).iter().all(fits).then(|| Hierarchy::of_checked(groups))
}

fn mend_root(group: &mut Group, fault: RootFault) -> Option<()> {
    match fault {
        RootFault::Parent => group.parent = GroupId::ROOT,
        RootFault::Rule => group.rule = root_group()?.rule,
        RootFault::Name => {}
    }
    Some(())
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
    let has_same_name =
        first.name() == second.name() && first.environment() == second.environment();
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
    let group = second.checked_group()?;
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
