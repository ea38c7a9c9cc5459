//! The keys of a group, and in which of them two forms of it differ.

use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;

use crate::model::{Condition, Group};
use crate::rule::{is_with_more_pins, split_pins, split_terms};

/// A key of a group, as files name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
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

impl GroupKey {
    /// Returns whether two forms of a group differ in the key. A rule that only pins other nodes
    /// differs in `pinned`, and not in `rule`.
    pub(crate) fn differs(self, before: &Group, after: &Group) -> bool {
        match self {
            Self::Name => before.name != after.name,
            Self::Description => before.description != after.description,
            Self::Parent => before.parent != after.parent,
            Self::Environment => before.environment != after.environment,
            Self::EnvironmentTrumps => before.environment_trumps != after.environment_trumps,
            Self::Rule => rule_differs(before, after),
            Self::Pinned => pins_differ(before, after),
            Self::Classes => before.classes != after.classes,
            Self::ConfigData => before.config_data != after.config_data,
            Self::Variables => before.variables != after.variables,
        }
    }
}

/// Returns whether the rules of two forms of a group differ in more than what they pin.
fn rule_differs(before: &Group, after: &Group) -> bool {
    let only_pins = |before: &Condition, after: &Condition| {
        let ((own, pins), (new, new_pins)) = (split_terms(before), split_terms(after));
        is_with_more_pins(after, before) || own == new && pins != new_pins
    };
    let rules = before.rule.as_deref().zip(after.rule.as_deref());
    rule_and_pins(before).0 != rule_and_pins(after).0
        && !rules.is_some_and(|(before, after)| only_pins(before, after))
}

/// Returns whether the rules of two forms of a group differ in what they pin, in the console's shape or among other terms.
fn pins_differ(before: &Group, after: &Group) -> bool {
    let names = |rule| split_terms(rule).1;
    let [names, new_names] =
        [before, after].map(|it| it.rule.as_deref().map(names).unwrap_or_default());
    rule_and_pins(before).1 != rule_and_pins(after).1 || names != new_names
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

/// Returns the rule of a group without pinned nodes, and the pinned nodes.
pub(crate) fn rule_and_pins(group: &Group) -> (Option<Condition>, Vec<Arc<str>>) {
    group.rule.as_deref().cloned().map_or((None, Vec::new()), split_pins)
}

/// Returns the keys in which two forms of a group differ, in the order of [`GroupKey::ALL`].
pub(crate) fn changed_keys(before: &Group, after: &Group) -> Vec<GroupKey> {
    GroupKey::ALL.into_iter().filter(|key| key.differs(before, after)).collect()
}
