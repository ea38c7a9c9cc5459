//! Which groups a change is about.

use std::collections::BTreeMap;

use super::Side;
use super::changed_key::ChangedKey;
use super::gone_groups::GoneGroups;
use crate::hierarchy::GroupKey;
use crate::model::{Group, GroupId};

/// A group that differs between the two states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupChange {
    /// Its id: that of the new state, unless it is gone.
    pub id: GroupId,
    /// Its name, likewise.
    pub name: String,
    /// How it differs.
    pub how: How,
    /// The file it is written in, in the new state if it is there.
    pub file: Option<String>,
    /// The line in that file: of the first key that differs once [`Impact::locate`](super::Impact::locate)
    /// knows it, else of the name.
    pub line: Option<u32>,
    /// The keys that differ, as far as they are located.
    pub keys: Vec<ChangedKey>,
}

/// How a group differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It is the same under another name or in another environment, and without an explicit id
    /// that is another group.
    Renamed {
        /// The id that it had.
        from: GroupId,
        /// The name that it had.
        name: String,
        /// The keys that differ.
        keys: Vec<GroupKey>,
    },
    /// Some of its keys differ.
    Modified(Vec<GroupKey>),
}

impl How {
    /// Returns the word of the machine format.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Renamed { .. } => "renamed",
            Self::Modified(_) => "modified",
        }
    }

    /// Says it in a few words: `rule changed`.
    pub fn in_words(&self) -> String {
        match self {
            Self::Added => "new".to_owned(),
            Self::Removed => "removed".to_owned(),
            Self::Renamed { name, keys, .. } if keys.contains(&GroupKey::Name) => {
                let others: Vec<GroupKey> =
                    keys.iter().copied().filter(|it| *it != GroupKey::Name).collect();
                match others.is_empty() {
                    true => format!("renamed from {name}"),
                    false => format!("renamed from {name}, {}", changed(&others)),
                }
            }
            // Without an id of its own a group has that of its environment and name.
            Self::Renamed { keys, .. } if keys.is_empty() => "id changed".to_owned(),
            Self::Renamed { keys, .. } => format!("{} (and so its id)", changed(keys)),
            Self::Modified(keys) => changed(keys),
        }
    }
}

fn changed(keys: &[GroupKey]) -> String {
    let keys: Vec<&str> = keys.iter().map(|it| it.as_str()).collect();
    format!("{} changed", keys.join(", "))
}

/// Returns the groups that differ, by name.
pub fn group_changes(base: Side<'_>, head: Side<'_>) -> Vec<GroupChange> {
    let by_id = |side: Side<'_>| -> BTreeMap<GroupId, Group> {
        side.estate.hierarchy.groups().map(|it| (it.id, it.clone())).collect()
    };
    let (old, new) = (by_id(base), by_id(head));
    let mut gone = GoneGroups::of(old.values().filter(|it| !new.contains_key(&it.id)));
    let mut changes = Vec::new();
    for group in new.values() {
        let how = match old.get(&group.id) {
            Some(before) => {
                let keys = shown_keys(before, group);
                if keys.is_empty() {
                    continue;
                }
                How::Modified(keys)
            }
            None => match gone.take_former(group) {
                Some(before) => How::Renamed {
                    from: before.id,
                    name: before.name.to_string(),
                    keys: shown_keys(before, group),
                },
                None => How::Added,
            },
        };
        changes.push(change(head, group, how));
    }
    changes.extend(gone.left().map(|group| change(base, group, How::Removed)));
    changes.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
    changes
}

fn change(side: Side<'_>, group: &Group, how: How) -> GroupChange {
    let place = side.origins.get(&group.id);
    GroupChange {
        id: group.id,
        name: group.name.to_string(),
        how,
        file: place.map(|it| it.file.to_string()),
        line: place.map(|it| it.span.start.line),
        keys: Vec::new(),
    }
}

/// The keys that a diff shows, in its order. A description changes nothing on a node, and a change to
/// pinned nodes is shown as one to the rule that they are part of.
const SHOWN: [GroupKey; 8] = [
    GroupKey::Name,
    GroupKey::Parent,
    GroupKey::Rule,
    GroupKey::Environment,
    GroupKey::EnvironmentTrumps,
    GroupKey::Classes,
    GroupKey::Variables,
    GroupKey::ConfigData,
];

fn shown_keys(old: &Group, new: &Group) -> Vec<GroupKey> {
    let differs = |key: &GroupKey| match key {
        GroupKey::Rule => old.rule != new.rule,
        key => key.differs(old, new),
    };
    SHOWN.into_iter().filter(differs).collect()
}
