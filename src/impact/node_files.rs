//! Which values, set for one node alone, a change is about.

use std::collections::BTreeSet;

use super::Side;
use super::changed_key::ChangedKey;
use super::groups::How;
use crate::hierarchy::GroupKey;
use crate::model::Individual;

/// The values set for one node alone differ between the two states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFileChange {
    /// The certname.
    pub node: String,
    /// How they differ.
    pub how: How,
    /// The file they are written in, in the new state if it is there.
    pub file: Option<String>,
    /// The line in that file: of the first key that differs once [`Impact::locate`](super::Impact::locate)
    /// knows it.
    pub line: Option<u32>,
    /// The keys that differ, as far as they are located.
    pub keys: Vec<ChangedKey>,
}

/// Returns the nodes whose own values differ, by name.
pub(super) fn node_file_changes(base: Side<'_>, head: Side<'_>) -> Vec<NodeFileChange> {
    let (old, new) = (&base.estate.individuals, &head.estate.individuals);
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let change = |node: &String| {
        let how = match (old.get(node), new.get(node)) {
            (Some(old), Some(new)) if old == new => return None,
            (Some(old), Some(new)) => How::Modified(changed_values(old, new)),
            (None, _) => How::Added,
            (_, None) => How::Removed,
        };
        let side = if matches!(how, How::Removed) { base } else { head };
        let place = side.node_origins.get(node);
        Some(NodeFileChange {
            node: node.clone(),
            how,
            file: place.map(|it| it.file.to_string()),
            line: place.map(|it| it.span.start.line),
            keys: Vec::new(),
        })
    };
    names.into_iter().filter_map(change).collect()
}

fn changed_values(old: &Individual, new: &Individual) -> Vec<GroupKey> {
    [
        (GroupKey::Classes, old.classes != new.classes),
        (GroupKey::Variables, old.variables != new.variables),
        (GroupKey::ConfigData, old.config_data != new.config_data),
    ]
    .into_iter()
    .filter_map(|(key, differs)| differs.then_some(key))
    .collect()
}
