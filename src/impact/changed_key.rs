//! A key of a file that a change is in.

use super::nodes::{Difference, ValueKind};

/// A key of a file that a change is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedKey {
    /// Such as `classes`, `apache`, `port`.
    pub(super) path: Vec<String>,
    /// Its line; that of the mapping around it if it is gone.
    pub(super) line: u32,
}

/// Returns the line of the changed key that a difference is about; none if no key is known.
pub(super) fn line_of(keys: &[ChangedKey], difference: &Difference) -> Option<u32> {
    let wanted: Vec<Vec<&str>> = match difference {
        Difference::Value(it) => {
            let class = it.class.as_deref();
            let top = match it.kind {
                ValueKind::Parameter => "classes",
                ValueKind::ConfigData => "config_data",
                ValueKind::Variable => "variables",
            };
            vec![[top].into_iter().chain(class).chain([it.name.as_str()]).collect()]
        }
        Difference::ClassAdded(class) | Difference::ClassRemoved(class) => {
            vec![vec!["classes", class]]
        }
        Difference::Environment { .. } => vec![vec!["environment"], vec!["environment_trumps"]],
        Difference::Renamed { .. } => vec![vec!["name"], vec!["environment"], vec!["id"]],
        Difference::Entered(_)
        | Difference::Left(_)
        | Difference::Conflict(_)
        | Difference::Error(_) => Vec::new(),
    };
    // What is written below or above the key is about it, too; else the group has other nodes.
    let membership = [vec!["rule"], vec!["pinned"], vec!["parent"]];
    let is_about = |key: &ChangedKey, wanted: &[&str]| {
        key.path.iter().zip(wanted).all(|(have, want)| have == want)
    };
    let found = wanted
        .iter()
        .chain(&membership)
        .find_map(|wanted| keys.iter().find(|key| is_about(key, wanted)).map(|key| key.line));
    found.or_else(|| keys.iter().map(|it| it.line).min())
}
