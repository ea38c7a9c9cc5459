//! Reading an export: every group that cannot be imported is found, with what to do about it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::changeset::{check_numbers, read_json};
use crate::diagnostic::{Severity, visible_up_to};
use crate::hierarchy::{HierarchyFault, check};
use crate::model::{Group, GroupId, GroupName, Map, type_name};
use crate::validation::ParentName;
use crate::wording::and_more;

/// What Puppet Enterprise adds to a group and git knows better.
const DROPPED: &[&str] = &["last_edited", "serial_number", "deleted"];

/// The longest error of a classifier that is shown.
const LONGEST_ERROR: usize = 500;

/// The groups of an export.
#[derive(Debug)]
pub(in crate::cli) struct Export {
    /// Those that can be imported, which form a tree.
    pub(in crate::cli) groups: Vec<Group>,
    /// The others.
    pub(in crate::cli) faults: Vec<ExportFault>,
    /// Whether the root group is one of these others.
    pub(in crate::cli) is_root_left_out: bool,
}

/// A group that cannot be imported.
#[derive(Debug)]
pub(in crate::cli) struct ExportFault {
    /// Which one, in words.
    pub(in crate::cli) group: String,
    /// Why not.
    pub(in crate::cli) reason: String,
}

impl fmt::Display for ExportFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.group, self.reason)
    }
}

/// Reads an export.
///
/// # Errors
///
/// Returns an error if the text is not a list of groups.
pub(in crate::cli) fn read(text: &str) -> Result<Export> {
    let export: Value = serde_json::from_str(text).context("the export is not valid JSON")?;
    let Value::Array(entries) = export else {
        let found = type_name(&export);
        let said =
            export.get("msg").and_then(Value::as_str).map(|it| visible_up_to(it, LONGEST_ERROR));
        let said = said.map(|it| format!(", an error of the classifier: {it}")).unwrap_or_default();
        bail!("expected a list of groups, as `GET /v1/groups` answers, found {found}{said}");
    };
    if entries.is_empty() {
        bail!("the export has no groups: it must have the root group at least");
    }
    let (mut groups, mut faults) = (Vec::new(), Vec::new());
    let mut left_out = BTreeSet::new();
    for (number, entry) in entries.iter().enumerate() {
        match group(entry, text) {
            Ok(group) => groups.push(group),
            Err(reason) => {
                let name = entry["name"].as_str().unwrap_or_default();
                let group = format!("group {} `{name}`", number + 1);
                faults.push(ExportFault { group, reason });
                left_out.extend(id_of(entry));
            }
        }
    }
    prune(&mut groups, &mut left_out, &mut faults);
    let is_root_left_out = left_out.contains(&GroupId::ROOT);
    Ok(Export { groups, faults, is_root_left_out })
}

/// Returns the id of a group that cannot be imported, if it says one. The root group is known by its name, too.
fn id_of(entry: &Value) -> Option<GroupId> {
    let id = entry["id"].as_str().and_then(|it| it.parse().ok());
    id.or_else(|| (entry["name"] == GroupName::ROOT).then_some(GroupId::ROOT))
}

fn group(entry: &Value, text: &str) -> Result<Group, String> {
    let Value::Object(fields) = entry else {
        return Err(format!("expected an object, found {}", type_name(entry)));
    };
    check_numbers(entry, text)?;
    let mut fields: Map<String, Value> = fields.clone();
    fields.retain(|key, _| !DROPPED.contains(&key.as_str()));
    let reading = read_json(fields);
    let errors: Vec<String> = reading
        .diagnostics
        .iter()
        .filter(|it| it.severity == Severity::Error)
        .map(|it| match &it.help {
            Some(help) => format!("{} ({help})", it.message),
            None => it.message.clone(),
        })
        .collect();
    if !errors.is_empty() {
        return Err(errors.join("; "));
    }
    let file = reading.groups().first();
    let parent = file.and_then(|file| file.parent.clone());
    match (file.and_then(|file| file.group().cloned()), parent) {
        (Some(group), Some(ParentName::Id(parent))) => Ok(Group { parent, ..group }),
        (Some(group), None) if group.id == GroupId::ROOT => Ok(group),
        (Some(_), _) => Err("its `parent` must be the id of a group".to_owned()),
        (None, _) => Err("it is not a group".to_owned()),
    }
}

/// How many groups of a cycle are named.
const NAMED: usize = 10;

/// Takes out groups that have no place in a tree, then those below them.
fn prune(groups: &mut Vec<Group>, left_out: &mut BTreeSet<GroupId>, faults: &mut Vec<ExportFault>) {
    loop {
        let mut out = misplaced(groups, left_out);
        if out.is_empty() {
            return;
        }
        let mut of_id: HashMap<GroupId, usize> = HashMap::new();
        let mut children: HashMap<GroupId, Vec<usize>> = HashMap::new();
        for (at, group) in groups.iter().enumerate() {
            *of_id.entry(group.id).or_default() += 1;
            if group.id != GroupId::ROOT && group.parent != GroupId::ROOT {
                children.entry(group.parent).or_default().push(at);
            }
        }
        let mut taken = BTreeSet::new();
        while !out.is_empty() {
            let mut orphans = Vec::new();
            for (at, reason) in out.iter().rev() {
                let Some(group) = groups.get(*at) else { continue };
                let reason = reason.clone();
                faults.push(ExportFault { group: format!("group `{}`", group.name), reason });
                taken.insert(*at);
                let left = of_id.entry(group.id).or_default();
                *left -= 1;
                // The other group of a pair with one id stays.
                if *left == 0 {
                    left_out.insert(group.id);
                    orphans.extend(children.remove(&group.id).into_iter().flatten());
                }
            }
            let orphans = orphans.into_iter().filter(|it| !taken.contains(it));
            out = orphans.map(|it| (it, "its parent cannot be imported".to_owned())).collect();
        }
        let mut at = 0..;
        groups.retain(|_| at.next().is_none_or(|it| !taken.contains(&it)));
    }
}

/// Says which groups have no place in a tree, and why.
fn misplaced(groups: &[Group], left_out: &BTreeSet<GroupId>) -> BTreeMap<usize, String> {
    let mut out: BTreeMap<usize, String> = BTreeMap::new();
    let name = |at: usize| groups.get(at).map_or("", |it| it.name.as_str());
    for fault in check(groups) {
        match fault {
            HierarchyFault::DuplicateId { first, second } => {
                out.entry(second).or_insert(format!(
                    "it has the id of `{}`: give one of them another id",
                    name(first)
                ));
            }
            HierarchyFault::DuplicateName { second, .. } => {
                out.entry(second).or_insert(
                    "another group of its environment has this name: rename one of them".to_owned(),
                );
            }
            HierarchyFault::MissingParent { group } => {
                let parent = groups.get(group).map(|it| it.parent);
                let reason = match parent.filter(|it| left_out.contains(it)) {
                    Some(_) => "its parent cannot be imported".to_owned(),
                    None => format!(
                        "its parent {} is not in the export: export all groups",
                        parent.map_or(String::new(), |it| it.to_string())
                    ),
                };
                out.entry(group).or_insert(reason);
            }
            HierarchyFault::Cycle { groups: cycle } => {
                let around = cycle.iter().chain(cycle.first());
                let names: Vec<&str> = match cycle.len() {
                    0..=NAMED => around.map(|at| name(*at)).collect(),
                    _ => cycle.iter().take(NAMED).map(|at| name(*at)).collect(),
                };
                let more = and_more(cycle.len().saturating_sub(NAMED));
                let names = names.join(" -> ");
                let reason =
                    format!("inheritance cycle: {names}{more}: give one of them another parent");
                for at in cycle {
                    out.entry(at).or_insert_with(|| reason.clone());
                }
            }
            HierarchyFault::Root { group, fault } => {
                out.entry(group).or_insert(fault.to_string());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn id(number: usize) -> String {
        format!("00000000-0000-4000-8000-{number:012}")
    }

    /// Reads groups with these parents, numbered from 1; 0 is the root group.
    fn faults_of(parents: &[usize]) -> Vec<String> {
        let group = |(at, parent): (usize, &usize)| {
            json!({
                "name": format!("G{}", at + 1), "id": id(at + 1), "parent": id(*parent),
                "classes": {}, "environment": "production",
            })
        };
        let groups: Vec<Value> = parents.iter().enumerate().map(group).collect();
        read(&Value::from(groups).to_string())
            .unwrap()
            .faults
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn those_below_a_group_that_is_left_out_are_left_out_level_by_level() {
        // 1 and 2 have no parent, 3 and 4 are below 1, 5 is below 4, 6 is below the root group.
        let faults = faults_of(&[90, 91, 1, 1, 4, 0]);
        let below = |number| format!("group `G{number}`: its parent cannot be imported");
        assert!(faults[0].contains("`G2`: its parent") && faults[0].contains("is not in"));
        assert!(faults[1].contains("`G1`: its parent") && faults[1].contains("is not in"));
        assert_eq!(faults[2..], [below(4), below(3), below(5)]);
        let chain: Vec<usize> = std::iter::once(90_000).chain(1..20_000).collect();
        let faults = faults_of(&chain);
        assert_eq!((faults.len(), faults.last()), (20_000, Some(&below(20_000))));
    }

    #[test]
    fn a_few_groups_of_a_cycle_are_named() {
        let cycle = |length: usize| {
            let parents: Vec<usize> = (2..=length).chain([1]).collect();
            faults_of(&parents)
        };
        let end = ": give one of them another parent";
        let ten = "G1 -> G2 -> G3 -> G4 -> G5 -> G6 -> G7 -> G8 -> G9 -> G10";
        assert_eq!(cycle(10)[0], format!("group `G10`: inheritance cycle: {ten} -> G1{end}"));
        assert_eq!(cycle(12)[0], format!("group `G12`: inheritance cycle: {ten} and 2 more{end}"));
    }
}
