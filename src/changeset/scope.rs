//! Where a caller may write, and which keys.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::Serialize;

use super::document::rule_and_pins;
use super::refusal::Refusal;
use crate::hierarchy::Hierarchy;
use crate::model::{Group, GroupId};
use crate::rule::is_with_more_pins;

/// What one grant allows to change. The default is everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// The groups, each with all groups below it; `None` is every group.
    pub groups: Option<BTreeSet<GroupId>>,
    /// The keys of groups; `None` is every key. A scope with keys creates and deletes no groups, and
    /// moves them only with the key `parent`.
    pub keys: Option<BTreeSet<GroupKey>>,
}

/// A key of a group, as files name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the keys of a group file")]
pub enum GroupKey {
    Name,
    Description,
    Parent,
    Environment,
    EnvironmentTrumps,
    Rule,
    Pinned,
    Classes,
    ConfigData,
    Variables,
}

impl GroupKey {
    /// Every key, in the order in which differences are reported.
    pub const ALL: [Self; 10] = [
        Self::Name,
        Self::Description,
        Self::Parent,
        Self::Environment,
        Self::EnvironmentTrumps,
        Self::Rule,
        Self::Pinned,
        Self::Classes,
        Self::ConfigData,
        Self::Variables,
    ];

    /// Returns the key as files write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Description => "description",
            Self::Parent => "parent",
            Self::Environment => "environment",
            Self::EnvironmentTrumps => "environment_trumps",
            Self::Rule => "rule",
            Self::Pinned => "pinned",
            Self::Classes => "classes",
            Self::ConfigData => "config_data",
            Self::Variables => "variables",
        }
    }
}

/// A text is not a key of a group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown key `{0}`: expected one of {known}", known = known_keys())]
pub struct GroupKeyError(String);

fn known_keys() -> String {
    GroupKey::ALL.map(|key| format!("`{}`", key.as_str())).join(", ")
}

impl FromStr for GroupKey {
    type Err = GroupKeyError;

    fn from_str(text: &str) -> Result<Self, GroupKeyError> {
        let found = Self::ALL.into_iter().find(|key| key.as_str() == text);
        found.ok_or_else(|| GroupKeyError(text.to_owned()))
    }
}

/// Checks that one scope allows a change as a whole; scopes never add up.
///
/// # Errors
///
/// Returns what the first scope does not allow.
pub(super) fn check(scopes: &[Scope], old: &Hierarchy, new: &[Group]) -> Result<(), Refusal> {
    let mut refused = None;
    for scope in scopes {
        match scope.check(old, new) {
            Ok(()) => return Ok(()),
            Err(refusal) => drop(refused.get_or_insert(refusal)),
        }
    }
    Err(refused.unwrap_or_else(|| Refusal::denied("change groups", serde_json::Value::Null)))
}

impl Scope {
    /// Returns whether the scope allows every change, environments and catalogues included.
    pub(super) fn is_everywhere(&self) -> bool {
        self.groups.is_none() && self.keys.is_none()
    }

    /// Returns whether the scope allows to edit a key of a group.
    pub(super) fn allows(&self, hierarchy: &Hierarchy, group: GroupId, key: GroupKey) -> bool {
        self.has(hierarchy, group) && self.has_key(key)
    }

    /// Returns whether the scope has a key. A rule may name nodes, so `rule` includes `pinned`.
    pub(super) fn has_key(&self, key: GroupKey) -> bool {
        self.keys.as_ref().is_none_or(|keys| {
            keys.contains(&key) || key == GroupKey::Pinned && keys.contains(&GroupKey::Rule)
        })
    }

    /// Returns whether a group lies below the groups of the scope, or is one of them.
    fn has(&self, hierarchy: &Hierarchy, group: GroupId) -> bool {
        let Some(groups) = &self.groups else { return true };
        hierarchy.find(group).is_some_and(|index| {
            hierarchy.lineage(index).any(|it| groups.contains(&hierarchy.group(it).id))
        })
    }

    /// Checks that a new set of groups differs from the old one only where the scope allows it.
    fn check(&self, old: &Hierarchy, new: &[Group]) -> Result<(), Refusal> {
        let ids: BTreeMap<GroupId, &Group> = new.iter().map(|group| (group.id, group)).collect();
        for before in old.groups() {
            match ids.get(&before.id) {
                None => self.whole(old, before, before.id, "remove")?,
                Some(after) if *after != before => self.edited(old, before, after)?,
                Some(_) => {}
            }
        }
        for group in new.iter().filter(|group| old.find(group.id).is_none()) {
            // A parent that is new itself is checked as a new group.
            if old.find(group.parent).is_some() || !ids.contains_key(&group.parent) {
                self.whole(old, group, group.parent, "make")?;
            }
        }
        Ok(())
    }

    fn whole(
        &self,
        old: &Hierarchy,
        group: &Group,
        place: GroupId,
        verb: &str,
    ) -> Result<(), Refusal> {
        if self.keys.is_none() && self.has(old, place) {
            return Ok(());
        }
        Err(denied(&format!("{verb} the group \"{}\" there", group.name), group.id))
    }

    fn edited(&self, old: &Hierarchy, before: &Group, after: &Group) -> Result<(), Refusal> {
        let keys = changed_keys(before, after);
        if let Some(key) = keys.iter().find(|key| !self.allows(old, before.id, **key)) {
            let what = format!("edit `{}` of the group \"{}\"", key.as_str(), before.name);
            return Err(denied(&what, before.id));
        }
        if before.parent != after.parent && !self.has(old, after.parent) {
            return Err(denied(&format!("move the group \"{}\" there", before.name), before.id));
        }
        Ok(())
    }
}

fn denied(what: &str, group: GroupId) -> Refusal {
    Refusal::denied(what, group.to_string())
}

/// Returns the keys in which two forms of a group differ.
pub(super) fn changed_keys(before: &Group, after: &Group) -> Vec<GroupKey> {
    let (rule_before, pins_before) = rule_and_pins(before);
    let (rule_after, pins_after) = rule_and_pins(after);
    let rules = before.rule.as_deref().zip(after.rule.as_deref());
    let only_pins = rules.is_some_and(|(before, after)| is_with_more_pins(after, before));
    let differs = |key: &GroupKey| match key {
        GroupKey::Name => before.name != after.name,
        GroupKey::Description => before.description != after.description,
        GroupKey::Parent => before.parent != after.parent,
        GroupKey::Environment => before.environment != after.environment,
        GroupKey::EnvironmentTrumps => before.environment_trumps != after.environment_trumps,
        GroupKey::Rule => rule_before != rule_after && !only_pins,
        GroupKey::Pinned => pins_before != pins_after,
        GroupKey::Classes => before.classes != after.classes,
        GroupKey::ConfigData => before.config_data != after.config_data,
        GroupKey::Variables => before.variables != after.variables,
    };
    GroupKey::ALL.into_iter().filter(differs).collect()
}

#[cfg(test)]
mod tests;
