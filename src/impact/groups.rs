//! Which groups a change is about.

use std::collections::{BTreeMap, BTreeSet};

use super::Side;
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
    /// The line in that file.
    pub line: Option<u32>,
}

/// How a group differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// It is the same under another name, and without an explicit id that is another group.
    Renamed {
        /// The id that it had.
        from: GroupId,
        /// The name that it had.
        name: String,
    },
    /// Some of its parts differ.
    Modified(BTreeSet<Part>),
}

/// A part of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Its name.
    Name,
    /// Its parent.
    Parent,
    /// Its rule, pinned nodes included.
    Rule,
    /// Its environment.
    Environment,
    /// Whether its environment trumps.
    Trump,
    /// Its classes.
    Classes,
    /// Its variables.
    Variables,
    /// Its config data.
    ConfigData,
}

impl Part {
    /// Returns the key of a group file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Parent => "parent",
            Self::Rule => "rule",
            Self::Environment => "environment",
            Self::Trump => "environment_trumps",
            Self::Classes => "classes",
            Self::Variables => "variables",
            Self::ConfigData => "config_data",
        }
    }
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
            Self::Renamed { name, .. } => format!("renamed from {name}"),
            Self::Modified(parts) => {
                let parts: Vec<&str> = parts.iter().map(|it| it.as_str()).collect();
                format!("{} changed", parts.join(", "))
            }
        }
    }

    /// Returns whether it can change which nodes the group matches.
    pub fn moves_nodes(&self) -> bool {
        match self {
            Self::Added | Self::Removed | Self::Renamed { .. } => true,
            Self::Modified(parts) => parts.contains(&Part::Rule) || parts.contains(&Part::Parent),
        }
    }
}

/// Returns the groups that differ, by name.
pub fn group_changes(base: Side<'_>, head: Side<'_>) -> Vec<GroupChange> {
    let by_id = |side: Side<'_>| -> BTreeMap<GroupId, Group> {
        side.estate.hierarchy.groups().map(|it| (it.id, it.clone())).collect()
    };
    let (old, new) = (by_id(base), by_id(head));
    let mut gone: Vec<&Group> = old.values().filter(|it| !new.contains_key(&it.id)).collect();
    let mut changes = Vec::new();
    for group in new.values() {
        let how = match old.get(&group.id) {
            Some(before) => {
                let parts = differing(before, group);
                if parts.is_empty() {
                    continue;
                }
                How::Modified(parts)
            }
            None => match gone.iter().position(|it| is_renamed(it, group)) {
                Some(index) => {
                    let before = gone.remove(index);
                    How::Renamed { from: before.id, name: before.name.to_string() }
                }
                None => How::Added,
            },
        };
        changes.push(change(head, group, how));
    }
    changes.extend(gone.into_iter().map(|group| change(base, group, How::Removed)));
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
    }
}

fn differing(old: &Group, new: &Group) -> BTreeSet<Part> {
    [
        (Part::Name, old.name != new.name),
        (Part::Parent, old.parent != new.parent),
        (Part::Rule, old.rule != new.rule),
        (Part::Environment, old.environment != new.environment),
        (Part::Trump, old.environment_trumps != new.environment_trumps),
        (Part::Classes, old.classes != new.classes),
        (Part::Variables, old.variables != new.variables),
        (Part::ConfigData, old.config_data != new.config_data),
    ]
    .into_iter()
    .filter_map(|(part, differs)| differs.then_some(part))
    .collect()
}

/// Returns whether a new group is one that is gone, under another name; its parent may have been
/// renamed as well.
fn is_renamed(old: &Group, new: &Group) -> bool {
    let mut parts = differing(old, new);
    parts.remove(&Part::Name);
    parts.remove(&Part::Parent);
    // Two groups that say nothing are no more the same than any other two.
    let says_something = new.rule.is_some() || !new.classes.is_empty();
    parts.is_empty() && says_something
}
