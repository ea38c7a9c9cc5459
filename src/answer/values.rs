//! What a node gets, value by value.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::key::AnswerKey;
use crate::classification::{
    ClassificationError, Explanation, Final, Outcome, ValueSource, WithheldFacts, conclude,
    conflict_summary, matches,
};
use crate::diagnostic::closest;
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::{GroupId, Map, Node, Value};

/// A value, and what defines it.
#[derive(Clone, Debug, PartialEq)]
pub struct Defined {
    /// The value; the name of a group; an empty object for a class.
    pub value: Value,
    /// The group that defines it, the first of several; none for the node's own file.
    pub group: Option<DefiningGroup>,
}

/// A group that defines a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefiningGroup {
    /// Its id.
    pub id: GroupId,
    /// Its name.
    pub name: String,
}

impl DefiningGroup {
    pub(super) fn of(hierarchy: &Hierarchy, index: GroupIndex) -> Self {
        let group = hierarchy.group(index);
        Self { id: group.id, name: group.name.to_string() }
    }
}

impl Defined {
    /// Returns the key as people read and write it: with the name of a group in place of its id.
    pub fn key_text(&self, key: &AnswerKey) -> String {
        match (key, &self.group) {
            (AnswerKey::Group(_), Some(group)) => format!("groups.{}", group.name),
            _ => key.path().join("."),
        }
    }

    /// Returns whether people may mean this value by a text: the whole key, a part of it behind the first,
    /// or `class::parameter`.
    fn is_meant_by(&self, key: &AnswerKey, wanted: &str) -> bool {
        let text = self.key_text(key);
        let behind = text.strip_prefix("groups.").is_some_and(|name| name == wanted);
        let path = key.path();
        let rest = path.get(1..).unwrap_or_default();
        text == wanted
            || behind
            || rest.contains(&wanted)
            || (!rest.is_empty() && rest.join("::") == wanted)
    }
}

/// A node has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NoAnswer {
    /// The groups that match differ.
    #[error("{0}")]
    Conflict(String),
    /// It cannot be found out which groups match.
    #[error(transparent)]
    Unclassified(#[from] ClassificationError),
}

/// What a node gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer(BTreeMap<AnswerKey, Defined>);

impl Answer {
    /// Returns what a node gets.
    ///
    /// # Errors
    ///
    /// Returns an error if it gets nothing.
    pub fn of(estate: &Estate, node: &Node) -> Result<Self, NoAnswer> {
        Self::with_values_of(estate, node, node)
    }

    /// Returns what a node gets, as people are shown it: its groups are those that its own facts match, and its
    /// values have the facts of `shown` in them.
    ///
    /// # Errors
    ///
    /// Returns an error if it gets nothing.
    pub fn with_values_of(estate: &Estate, node: &Node, shown: &Node) -> Result<Self, NoAnswer> {
        let groups = matches(&estate.hierarchy, node)?;
        // Blame is for people.
        let explanation = conclude(estate, shown, &groups, WithheldFacts::Mark)?;
        match &explanation.outcome {
            Outcome::Classified(result) => Ok(Self::read(&explanation, result)),
            Outcome::Conflict(conflicts) => {
                Err(NoAnswer::Conflict(conflict_summary(&estate.hierarchy, conflicts)))
            }
        }
    }

    pub(super) fn read(explanation: &Explanation<'_>, result: &Final<'_>) -> Self {
        let hierarchy = &explanation.estate.hierarchy;
        let mut values = BTreeMap::new();
        for found in &explanation.matches {
            let group = DefiningGroup::of(hierarchy, found.group);
            let defined = Defined { value: group.name.as_str().into(), group: Some(group.clone()) };
            values.insert(AnswerKey::Group(group.id), defined);
        }
        let defined = |value: &Value, sources: &mut dyn Iterator<Item = &ValueSource>| {
            let group = sources.next().and_then(|it| group_of(hierarchy, *it));
            Defined { value: value.clone(), group }
        };
        let environment = Defined {
            value: result.environment.as_str().into(),
            group: match result.environment_sources.first() {
                Some(source) => group_of(hierarchy, *source),
                None => Some(DefiningGroup::of(hierarchy, hierarchy.root())),
            },
        };
        values.insert(AnswerKey::Environment, environment);
        let empty = Value::Object(Map::new());
        for (class, sources) in &result.classes {
            let class = (*class).clone();
            values.insert(
                AnswerKey::Class(class.clone()),
                defined(&empty, &mut sources.sources.iter()),
            );
            for (key, it) in &sources.parameters {
                let key = AnswerKey::Parameter(class.clone(), (*key).clone());
                values.insert(key, defined(&it.value, &mut it.sources.iter()));
            }
        }
        for (class, sources) in &result.config_data {
            for (key, it) in &sources.parameters {
                let key = AnswerKey::ConfigData((*class).clone(), (*key).clone());
                values.insert(key, defined(&it.value, &mut it.sources.iter()));
            }
        }
        for (name, it) in &result.variables {
            let key = AnswerKey::Variable((*name).clone());
            values.insert(key, defined(&it.value, &mut it.sources.iter()));
        }
        Self(values)
    }

    pub(super) fn from_values(values: BTreeMap<AnswerKey, Defined>) -> Self {
        Self(values)
    }

    /// Returns the values by key.
    pub fn values(&self) -> &BTreeMap<AnswerKey, Defined> {
        &self.0
    }

    /// Keeps the values that people may mean by a text.
    ///
    /// # Errors
    ///
    /// Returns a similar text that means a value, if there is one, where this one means none.
    pub fn narrow(&mut self, wanted: &str) -> Result<(), Option<String>> {
        if self.0.iter().any(|(key, it)| it.is_meant_by(key, wanted)) {
            self.0.retain(|key, it| it.is_meant_by(key, wanted));
            return Ok(());
        }
        let texts: Vec<String> = self.0.iter().map(|(key, it)| it.key_text(key)).collect();
        let last = |text: &str| text.rsplit('.').next().unwrap_or_default().to_owned();
        let ends: Vec<String> = texts.iter().map(|it| last(it)).collect();
        // Such as `apache::port`.
        let joined = |key: &AnswerKey| key.path().get(1..).unwrap_or_default().join("::");
        let joined: Vec<String> = self.0.keys().map(joined).collect();
        let known = texts.iter().chain(&ends).chain(&joined).map(String::as_str);
        Err(closest(wanted, known).map(str::to_owned))
    }
}

fn group_of(hierarchy: &Hierarchy, source: ValueSource) -> Option<DefiningGroup> {
    match source {
        ValueSource::Group(index) => Some(DefiningGroup::of(hierarchy, index)),
        ValueSource::Node => None,
    }
}
