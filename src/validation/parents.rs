//! Who the parent of each group is.

use std::cell::LazyCell;
use std::collections::HashSet;

use hashbrown::HashMap;

use super::group::{GroupFile, ParentName};
use crate::diagnostic::{Diagnostic, Kind, closest};
use crate::hierarchy::root_group;
use crate::model::GroupId;

/// Returns the parent of each group; `None` where it cannot be told, which is said.
pub(super) fn resolve(
    files: &[&GroupFile],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Option<GroupId>> {
    // The first group of each name, and whether there are more.
    let mut by_name: HashMap<&str, (&GroupFile, bool)> = HashMap::with_capacity(files.len());
    for file in files {
        if let Some(name) = file.name() {
            let known = by_name.entry(name.as_str());
            known.and_modify(|(_, several)| *several = true).or_insert((file, false));
        }
    }
    let names = LazyCell::new(|| {
        let mut names: Vec<&str> = by_name.keys().copied().chain(["All Nodes"]).collect();
        names.sort_unstable();
        names
    });
    let root_is_written = files.iter().any(|file| file.id() == Some(GroupId::ROOT));
    // A root group that no file has has its name all the same.
    let is_root_also = |name: &str| name == "All Nodes" && !root_is_written;
    let root = root_group();
    // One in the environment of the root group is an error of its own.
    let is_apart = |file: &GroupFile| {
        let environment = file.group().map(|it| &it.environment);
        environment.is_some_and(|it| root.as_ref().is_some_and(|root| root.environment != *it))
    };
    files
        .iter()
        .map(|file| {
            let Some(parent) = &file.parent else { return Some(GroupId::ROOT) };
            let name = match parent {
                ParentName::Id(id) => return Some(*id),
                ParentName::Name(name) => name.as_ref(),
            };
            match by_name.get(name) {
                Some((only, false)) if !(is_root_also(name) && is_apart(only)) => {
                    // A group with errors of its own still is the parent that is meant; its
                    // children are checked as far as they can be.
                    Some(only.id().unwrap_or(GroupId::ROOT))
                }
                Some(_) => {
                    let is_one = |it: &&&GroupFile| it.name().is_some_and(|it| it.as_str() == name);
                    let several: Vec<&GroupFile> = files.iter().filter(is_one).copied().collect();
                    diagnostics.push(ambiguous(file, name, &several, is_root_also(name))?);
                    None
                }
                None if is_root_also(name) => Some(GroupId::ROOT),
                None => {
                    let known = names.iter().copied();
                    diagnostics.push(missing(file, name, closest(name, known))?);
                    None
                }
            }
        })
        .collect()
}

fn missing(file: &GroupFile, name: &str, similar: Option<&str>) -> Option<Diagnostic> {
    let place = file.parent_place()?;
    let message = format!("the parent `{name}` does not exist");
    let mut diagnostic = Diagnostic::new(Kind::MissingParent, place, message);
    diagnostic.group = file.name().map(ToString::to_string);
    Some(match similar {
        Some(similar) => diagnostic.with_help(format!("did you mean `{similar}`?")),
        None => diagnostic.with_help("name a group of this repository, by name or id"),
    })
}

fn ambiguous(
    file: &GroupFile,
    name: &str,
    several: &[&GroupFile],
    is_root_also: bool,
) -> Option<Diagnostic> {
    let place = file.parent_place()?;
    let root = is_root_also.then_some(GroupId::ROOT);
    let count = several.len() + usize::from(is_root_also);
    let message = format!("the parent `{name}` is the name of {count} groups");
    let written = several.iter().filter_map(|it| it.id());
    let ids: Vec<String> = written.chain(root).map(|id| format!("`{id}`")).collect();
    let mut diagnostic = Diagnostic::new(Kind::AmbiguousParent, place, message)
        .with_help(format!("name it by id: {}", ids.join(" or ")));
    diagnostic.group = file.name().map(ToString::to_string);
    for it in several {
        let environment = it.group().map_or("", |group| group.environment.as_str());
        diagnostic =
            diagnostic.with_related(it.place(), format!("one in the environment `{environment}`"));
    }
    Some(diagnostic)
}

/// Reports a parent whose id is not that of any group; one that has errors of its own is there.
pub(super) fn missing_id(
    file: &GroupFile,
    files: &[&GroupFile],
    valid: &HashSet<GroupId>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let Some(ParentName::Id(id)) = &file.parent else { return };
    let written = files.iter().any(|it| it.id() == Some(*id));
    if !written && !valid.contains(id) {
        let known: Vec<String> = files.iter().filter_map(|it| Some(it.id()?.to_string())).collect();
        let text = id.to_string();
        let similar = closest(&text, known.iter().map(String::as_str));
        diagnostics.extend(missing(file, &text, similar));
    }
}
