//! Groups with errors, as far as they can be checked.

use std::sync::Arc;

use super::file_reader::{COMPARED_KEYS, FileReader};
use super::group_keys::means;
use crate::document::Node;
use crate::hierarchy::root_group;
use crate::model::{
    Classes, Condition, EnvironmentName, Group, GroupId, GroupName, Table, Value, VariableName,
    shared_classes, shared_variables,
};

/// A group with errors, as far as it could be read: what it says otherwise is checked, and it is never compiled.
#[derive(Clone, Debug)]
pub(super) struct PartialGroup {
    /// The group. Where its id or environment is not known, it has one that no other group has.
    pub(super) group: Group,
    /// The group as it was read, if nothing but its YAML has faults.
    pub(super) as_read: Option<Group>,
    /// The id, as far as it could be read.
    pub(super) id: Option<GroupId>,
    /// Whether the environment is known.
    pub(super) has_environment: bool,
    /// The keys whose values may be others, of those on which findings of other groups depend.
    pub(super) unknown_keys: Vec<&'static str>,
    /// The keys with values of which one has an error.
    pub(super) faulty_keys: Vec<&'static str>,
    /// The texts that may be meant as its name or id, too.
    pub(super) meant_names: Box<[String]>,
    /// The keys that are absent, not even misspelt, of those that a policy can require.
    pub(super) missing_keys: Vec<&'static str>,
}

impl PartialGroup {
    /// Returns whether a key is absent that a policy can require.
    pub(super) fn lacks(&self, key: &str) -> bool {
        self.missing_keys.contains(&key)
    }

    /// Returns whether the values of a key have an error, or may be others.
    pub(super) fn has_faults_in(&self, key: &str) -> bool {
        self.faulty_keys.contains(&key) || self.is_unknown(key)
    }

    /// Returns whether a key may have another value than the one that was read.
    pub(super) fn is_unknown(&self, key: &str) -> bool {
        self.unknown_keys.contains(&key)
    }
}

/// A rule with the pinned nodes, as far as they could be read.
#[derive(Clone, Debug)]
pub(super) enum ReadRule {
    /// All of it; none in a group that has neither.
    Whole(Option<Condition>),
    /// The rule, but not the pinned nodes.
    WithoutPins(Option<Condition>),
    Unreadable,
}

/// The parts of a group as they were read.
#[derive(Clone)]
pub(super) struct GroupParts {
    pub(super) name: Option<GroupName>,
    pub(super) id: Option<GroupId>,
    pub(super) environment: Option<EnvironmentName>,
    pub(super) trumps: Option<bool>,
    pub(super) description: Option<Arc<str>>,
    pub(super) rule: ReadRule,
    pub(super) classes: Classes,
    pub(super) variables: Table<VariableName, Value>,
    pub(super) config_data: Classes,
}

impl GroupParts {
    /// Returns the group with the root group as its parent; `None` if a part that it needs could not be read.
    pub(super) fn into_group(self) -> Option<Group> {
        let ReadRule::Whole(rule) = self.rule else { return None };
        Some(Group {
            id: self.id?,
            name: self.name?,
            parent: GroupId::ROOT,
            environment: self.environment?,
            environment_trumps: self.trumps.unwrap_or(false),
            description: self.description,
            rule: rule.map(Arc::new),
            classes: shared_classes(self.classes),
            variables: shared_variables(self.variables),
            config_data: shared_classes(self.config_data),
        })
    }

    /// Returns what can be checked of a group with errors; `None` without a name, which findings show.
    pub(super) fn into_partial(
        mut self,
        document: &Node,
        reader: &FileReader,
    ) -> Option<PartialGroup> {
        let lacks = |key: &str| {
            let mut first = document.entries().iter().take(COMPARED_KEYS);
            !reader.merges(document, key) && !first.any(|it| means(it, key))
        };
        // Another key may be meant to be this one, or a merge key may bring it.
        let is_unknown = |key: &str| document.get(key).is_none() && !lacks(key);
        let is_doubtful = |key: &str| reader.is_doubtful(document, key) || is_unknown(key);
        if is_doubtful("environment") {
            self.environment = None;
            // What follows from the environment is not known either.
            self.id = self.id.filter(|_| document.get("id").is_some());
        }
        let has_environment = self.environment.is_some();
        let is_unread = |it: &Node| !it.is_null() && it.as_str().is_none();
        let lacks_parent = document.get("parent").is_some_and(is_unread) || is_doubtful("parent");
        let lacks_pins = matches!(self.rule, ReadRule::WithoutPins(_)) || is_doubtful("pinned");
        let values = ["classes", "variables", "config_data"];
        let is_lost = |it: &&str| reader.lost_keys.contains(it) || is_unknown(it);
        let others = [("pinned", lacks_pins), ("parent", lacks_parent)];
        let others = others.into_iter().filter(|(_, is_lost)| *is_lost).map(|(key, _)| key);
        let unknown_keys = values.into_iter().filter(is_lost).chain(others).collect();
        self.rule = ReadRule::Whole(match self.rule {
            ReadRule::Whole(rule) | ReadRule::WithoutPins(rule) if !is_doubtful("rule") => rule,
            // The root group has no other rule, and what is wrong with this one is a finding.
            _ if self.id == Some(GroupId::ROOT) => root_group()?.rule.as_deref().cloned(),
            _ => None,
        });
        let id = self.id;
        let own_id = GroupId::of_document(&reader.file, document.name_span().start.offset);
        let own_environment = || format!("unknown_{own_id}").replace('-', "_").parse().ok();
        self.id = id.or(Some(own_id));
        self.environment = self.environment.or_else(own_environment);
        let has_description = document.get("description").is_some_and(|it| !it.is_null());
        let absent = [("id", document.get("id").is_none()), ("description", !has_description)];
        let missing = absent.into_iter().filter(|(key, is_absent)| *is_absent && lacks(key));
        Some(PartialGroup {
            id,
            has_environment,
            unknown_keys,
            faulty_keys: reader.faulty_keys.clone(),
            meant_names: Box::default(),
            missing_keys: missing.map(|(key, _)| key).collect(),
            group: self.into_group()?,
            as_read: None,
        })
    }
}
