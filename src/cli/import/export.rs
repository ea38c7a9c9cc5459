//! Reading an export: every group that cannot be imported is found, with what to do about it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::changeset::{check_numbers, read_json};
use crate::diagnostic::Severity;
use crate::hierarchy::{HierarchyFault, check};
use crate::model::{Group, GroupId, Map};
use crate::validation::ParentName;

/// What Puppet Enterprise adds to a group and git knows better.
const DROPPED: &[&str] = &["last_edited", "serial_number", "deleted"];

/// The groups of an export.
#[derive(Debug)]
pub(in crate::cli) struct Export {
    /// Those that can be imported, which form a tree.
    pub(in crate::cli) groups: Vec<Group>,
    /// Why others cannot, a sentence each.
    pub(in crate::cli) faults: Vec<String>,
}

/// Reads an export.
///
/// # Errors
///
/// Returns an error if the text is not a list of groups.
pub(in crate::cli) fn read(text: &str) -> Result<Export> {
    let export: Value = serde_json::from_str(text).context("the export is not valid JSON")?;
    let Value::Array(entries) = export else {
        bail!("expected a list of groups, as `GET /v1/groups` answers, found {}", kind(&export));
    };
    if entries.is_empty() {
        bail!("the export has no groups: it must have the root group at least");
    }
    let (mut groups, mut faults) = (Vec::new(), Vec::new());
    let mut left_out = BTreeSet::new();
    for (number, entry) in entries.iter().enumerate() {
        match group(entry, text) {
            Ok(group) => groups.push(group),
            Err(fault) => {
                let name = entry["name"].as_str().unwrap_or_default();
                faults.push(format!("group {} `{name}`: {fault}", number + 1));
                left_out.extend(entry["id"].as_str().and_then(|it| it.parse::<GroupId>().ok()));
            }
        }
    }
    prune(&mut groups, left_out, &mut faults);
    Ok(Export { groups, faults })
}

fn group(entry: &Value, text: &str) -> Result<Group, String> {
    let Value::Object(fields) = entry else {
        return Err(format!("expected an object, found {}", kind(entry)));
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

/// Takes out groups that have no place in a tree, then those below them.
fn prune(groups: &mut Vec<Group>, mut left_out: BTreeSet<GroupId>, faults: &mut Vec<String>) {
    loop {
        let mut out: BTreeMap<usize, String> = BTreeMap::new();
        let name = |at: usize| groups.get(at).map_or(String::new(), |it| it.name.to_string());
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
                        "another group of its environment has this name: rename one of them"
                            .to_owned(),
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
                    let names: Vec<String> =
                        cycle.iter().chain(cycle.first()).map(|at| name(*at)).collect();
                    for at in cycle {
                        out.entry(at).or_insert(format!(
                            "inheritance cycle: {}: give one of them another parent",
                            names.join(" -> ")
                        ));
                    }
                }
                HierarchyFault::Root { group, fault } => {
                    out.entry(group).or_insert(fault.to_string());
                }
            }
        }
        if out.is_empty() {
            return;
        }
        for (at, reason) in out.iter().rev() {
            let group = groups.remove(*at);
            faults.push(format!("group `{}`: {reason}", group.name));
            // The other group of a pair with one id stays.
            if !groups.iter().any(|it| it.id == group.id) {
                left_out.insert(group.id);
            }
        }
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
