//! What a conflict says in words.

use std::fmt;

use super::conflict::{ClassDifferences, ConflictShare, ConflictingLeaves, Conflicts};
use crate::hierarchy::{GroupIndex, Hierarchy};
use crate::model::{ClassName, Key};
use crate::wording::first_sentences;

/// How many keys a report names; it is one line of a log.
const REPORTED_KEYS: usize = 10;

/// The sentence with which messages of conflicts end, and which clients strip.
pub const SEE_DETAILS: &str = " See the `details` key for all conflicts.";

/// Writes the message of a conflict for clients of the API, which get the `details` as well.
pub fn conflict_message(hierarchy: &Hierarchy, conflicts: &Conflicts<'_>) -> String {
    conflict_summary(hierarchy, conflicts) + SEE_DETAILS
}

/// Writes which groups of a conflict differ, and in what.
pub fn conflict_summary(hierarchy: &Hierarchy, conflicts: &Conflicts<'_>) -> String {
    let groups: Vec<String> =
        conflicts.groups().into_iter().map(|it| name(hierarchy, it)).collect();
    let by_class = |classes| -> Vec<String> {
        keys_of_classes(classes).map(|(class, key, _)| format!("\"{class}::{key}\"")).collect()
    };
    let mut parts = Vec::new();
    if !conflicts.environment.is_empty() {
        parts.push("the environment".to_owned());
    }
    if !conflicts.classes.is_empty() {
        parts.push(format!("the class parameters {}", enumerate(&by_class(&conflicts.classes))));
    }
    if !conflicts.variables.is_empty() {
        let names: Vec<String> = conflicts.variables.keys().map(|it| format!("\"{it}\"")).collect();
        parts.push(format!("the variables {}", enumerate(&names)));
    }
    if !conflicts.config_data.is_empty() {
        parts.push(format!("the config data {}", enumerate(&by_class(&conflicts.config_data))));
    }
    format!(
        "The node was classified into groups named {} that defined conflicting values for {}.",
        enumerate(&groups),
        enumerate(&parts)
    )
}

/// Writes a conflict for readers who see the message alone, such as the log of an agent: which group
/// sets what, and where the values are shown.
///
/// The values themselves can be secrets, and logs are no place for them.
pub fn conflict_report(hierarchy: &Hierarchy, conflicts: &Conflicts<'_>) -> String {
    let set_by = |shares: &mut dyn Iterator<Item = ConflictShare<'_>>| {
        let groups: Vec<String> = shares.map(|it| sets(hierarchy, &it)).collect();
        enumerate(&groups)
    };
    let environment =
        (!conflicts.environment.is_empty()).then(|| ("the environment".to_owned(), None));
    let of_classes = |classes| {
        keys_of_classes(classes).map(|(class, key, it)| (format!("\"{class}::{key}\""), Some(it)))
    };
    let variables = conflicts.variables.iter().map(|(name, it)| (format!("\"{name}\""), Some(it)));
    let all = environment
        .into_iter()
        .chain(of_classes(&conflicts.classes))
        .chain(variables)
        .chain(of_classes(&conflicts.config_data));
    // Only what is shown is written: each key has all leaves.
    let all = all.map(|(key, it)| {
        fmt::from_fn(move |f| {
            let by = match it {
                Some(it) => set_by(&mut it.shares()),
                None => set_by(&mut conflicts.environment.iter().cloned()),
            };
            write!(f, "{key} by {by}")
        })
    });
    format!(
        "{} Set differently: {}.",
        conflict_summary(hierarchy, conflicts),
        first_sentences(all, REPORTED_KEYS, "; "),
    )
}

/// Returns the keys of classes in which leaves differ, with the leaves.
pub fn keys_of_classes<'c, 'e>(
    classes: &'c ClassDifferences<'e>,
) -> impl Iterator<Item = (&'e ClassName, &'e Key, &'c ConflictingLeaves<'e>)> {
    classes
        .iter()
        .flat_map(|(class, parameters)| parameters.iter().map(|(key, it)| (*class, *key, it)))
}

/// Names the leaf group that has a value, and the ancestor that sets it.
fn sets(hierarchy: &Hierarchy, difference: &ConflictShare<'_>) -> String {
    let leaf = name(hierarchy, difference.from);
    if difference.from == difference.defined_by {
        return leaf;
    }
    format!("{leaf} (inherited from {})", name(hierarchy, difference.defined_by))
}

fn name(hierarchy: &Hierarchy, group: GroupIndex) -> String {
    format!("\"{}\"", hierarchy.group(group).name)
}

/// Joins parts as English does: `a`, `a and b`, `a, b, and c`.
fn enumerate(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [first, second] => format!("{first} and {second}"),
        [rest @ .., last] => format!("{}, and {last}", rest.join(", ")),
    }
}
