//! One line on what a write changes, as a colleague would write it.

use std::fmt::Display;
use std::sync::Arc;

use hashbrown::HashSet;

use super::operation::Operation;
use crate::hierarchy::{GroupKey, Hierarchy, changed_keys, rule_and_pins};
use crate::model::{EnvironmentName, Group, GroupId};
use crate::wording::{counted, listed};

/// How many nodes a subject names.
const SHOWN: usize = 3;

/// `environments` are those whose file changes.
pub(super) fn of(
    operation: &Operation,
    old: &Hierarchy,
    new: &Hierarchy,
    environments: &[EnvironmentName],
) -> String {
    let in_new = |id: &GroupId| new.find(*id).map(|index| new.group(index));
    let in_old = |id: &GroupId| old.find(*id).map(|index| old.group(index));
    let name = |group: Option<&Group>| group.map_or_else(String::new, |it| it.name.to_string());
    match operation {
        Operation::Create { id, .. } | Operation::Put { id, .. } | Operation::Edit { id, .. } => {
            match (in_old(id), in_new(id)) {
                (Some(before), Some(after)) => edited(before, after, new),
                (_, after) => {
                    let parent = after.and_then(|it| in_new(&it.parent));
                    format!("Add the group \"{}\" below \"{}\"", name(after), name(parent))
                }
            }
        }
        Operation::Delete { id } => format!("Remove the group \"{}\"", name(in_old(id))),
        Operation::Pin { id, .. } => {
            let nodes = difference(in_new(id), in_old(id));
            format!("Pin {} to the group \"{}\"", list(&nodes), name(in_old(id)))
        }
        Operation::Unpin { id, .. } => {
            let nodes = difference(in_old(id), in_new(id));
            format!("Unpin {} from the group \"{}\"", list(&nodes), name(in_old(id)))
        }
        Operation::UnpinFromAll { nodes } => {
            let all: HashSet<Arc<str>> =
                old.groups().flat_map(|it| difference(Some(it), in_new(&it.id))).collect();
            let nodes: Vec<&str> =
                nodes.iter().map(String::as_str).filter(|it| all.contains(*it)).collect();
            format!("Unpin {} from all groups", list(&nodes))
        }
        Operation::MakeEnvironment { name } => format!("Add the environment \"{name}\""),
        Operation::RemoveEnvironment { name } => format!("Remove the environment \"{name}\""),
        Operation::UpdateClasses { .. } => {
            let names: Vec<String> = environments.iter().map(|it| format!("\"{it}\"")).collect();
            format!("Update the classes of {}", list(&names))
        }
        Operation::Import { .. } => {
            format!("Import a hierarchy of {}", counted(new.len(), "group"))
        }
    }
}

fn edited(before: &Group, after: &Group, new: &Hierarchy) -> String {
    let keys = changed_keys(before, after).into_iter();
    let keys: Vec<&str> = keys
        .filter(|key| !matches!(key, GroupKey::Name | GroupKey::Parent))
        .map(GroupKey::as_str)
        .collect();
    let mut verbs = Vec::new();
    if before.name != after.name {
        verbs.push(format!("Rename the group \"{}\" to \"{}\"", before.name, after.name));
    }
    if before.parent != after.parent {
        let parent = new.find(after.parent).map(|it| new.group(it).name.to_string());
        let parent = parent.unwrap_or_default();
        verbs.push(if verbs.is_empty() {
            format!("Move the group \"{}\" below \"{parent}\"", after.name)
        } else {
            format!("move it below \"{parent}\"")
        });
    }
    if !keys.is_empty() || verbs.is_empty() {
        let keys = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
        verbs.push(if verbs.is_empty() {
            format!("Edit the group \"{}\": {keys}", after.name)
        } else {
            format!("edit {keys}")
        });
    }
    verbs.join(", ")
}

/// Returns the nodes that are pinned to the first form of a group and not to the second.
fn difference(first: Option<&Group>, second: Option<&Group>) -> Vec<Arc<str>> {
    let pins = |group: Option<&Group>| group.map_or_else(Vec::new, |it| rule_and_pins(it).1);
    if first.map(|it| &it.rule) == second.map(|it| &it.rule) {
        return Vec::new();
    }
    let gone: HashSet<Arc<str>> = pins(second).into_iter().collect();
    pins(first).into_iter().filter(|it| !gone.contains(it)).collect()
}

/// Names some nodes, and how many more there are.
fn list(nodes: &[impl Display]) -> String {
    listed(nodes.iter(), SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hierarchy::root_group;
    use crate::rule::with_pins;

    /// Each pinned node was compared with each.
    #[test]
    fn the_nodes_of_two_long_lists_that_differ_are_found() {
        let pins = |from: usize| -> Vec<Arc<str>> {
            (from..from + 100_000).map(|it| format!("n{it}").into()).collect()
        };
        let group = |from| Group {
            rule: with_pins(None, &pins(from)).map(Arc::new),
            ..root_group().unwrap()
        };
        let (before, after) = (group(0), group(2));
        let found = difference(Some(&after), Some(&before));
        assert_eq!(found, [Arc::from("n100000"), Arc::from("n100001")]);
        assert_eq!(list(&found), "n100000, n100001");
        assert!(difference(Some(&after), Some(&after)).is_empty());
    }
}
