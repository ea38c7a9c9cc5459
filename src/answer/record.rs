//! What a node got, as it is kept.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::key::AnswerKey;
use super::values::{Answer, DefiningGroup};
use crate::classification::{
    ClassificationError, ConflictShare, ConflictingLeaves, Conflicts, Explanation, Outcome,
    WithheldFacts, conclude, conflict_summary, matches,
};
use crate::hierarchy::{Estate, GroupIndex, Hierarchy};
use crate::model::{ClassName, EnvironmentName, GroupId, Map, Node, Value};

/// How many bytes of the summary of a conflict are kept.
const SUMMARY: usize = 4 << 10;

/// How many keys of a conflict are kept.
const CONFLICTING_KEYS: usize = 100;

/// How many groups are kept of each key of a conflict.
const SHARES: usize = 20;

/// How many bytes of JSON a value in a conflict may have to be kept.
const CONFLICTING_VALUE: usize = 4 << 10;

/// What came of the classification of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeState {
    /// It got its values.
    Classified,
    /// The groups that match differ.
    Conflict,
    /// It could not be found out which groups match.
    Error,
}

impl NodeState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Classified, Self::Conflict, Self::Error];

    /// Returns the state in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Classified => "classified",
            Self::Conflict => "conflict",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word does not name the state of a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` does not name a state: expected `classified`, `conflict` or `error`")]
pub struct UnknownState(String);

impl FromStr for NodeState {
    type Err = UnknownState;

    fn from_str(text: &str) -> Result<Self, UnknownState> {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == text);
        found.ok_or_else(|| UnknownState(text.to_owned()))
    }
}

/// What a node got, without its name.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerRecord {
    /// Its values.
    Classified(Answer),
    /// A conflict.
    Conflict(ConflictRecord),
    /// An error.
    Error(RuleFailure),
}

/// A conflict, as far as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConflictRecord {
    /// The groups that match, by id.
    pub groups: Vec<DefiningGroup>,
    /// Which groups differ, and in what, in words.
    pub summary: String,
    /// The `details` of the error, with the id and the name of each group in place of the whole group.
    pub details: Value,
}

/// A rule that could not be evaluated, or a value into which facts could not be put.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleFailure {
    /// The group of the rule or of the value; the root group for a value that is set for the node alone.
    pub group: DefiningGroup,
    /// What went wrong.
    pub message: String,
}

impl AnswerRecord {
    /// Returns what a node gets.
    pub fn of(estate: &Estate, node: &Node) -> Self {
        let groups = matches(&estate.hierarchy, node);
        Self::of_groups(estate, node, groups.as_deref())
    }

    /// Returns what a node gets of which it is known what groups match, parents first, or why that is not
    /// known. Of its facts those matter that values mention; what is not stored of them is marked in the
    /// values. The name decides which values are set for the node alone.
    pub fn of_groups(
        estate: &Estate,
        node: &Node,
        groups: Result<&[GroupIndex], &ClassificationError>,
    ) -> Self {
        let concluded =
            |groups: &[GroupIndex]| match conclude(estate, node, groups, WithheldFacts::Mark) {
                Ok(explanation) => Self::read(&explanation),
                Err(error) => Self::Error(RuleFailure::of(&error)),
            };
        match groups {
            Ok(groups) => concluded(groups),
            Err(error) => Self::Error(RuleFailure::of(error)),
        }
    }

    fn read(explanation: &Explanation<'_>) -> Self {
        match &explanation.outcome {
            Outcome::Classified(result) => Self::Classified(Answer::read(explanation, result)),
            Outcome::Conflict(conflicts) => {
                Self::Conflict(ConflictRecord::of(explanation, conflicts))
            }
        }
    }

    /// Returns what came of the classification.
    pub fn state(&self) -> NodeState {
        match self {
            Self::Classified(_) => NodeState::Classified,
            Self::Conflict(_) => NodeState::Conflict,
            Self::Error(_) => NodeState::Error,
        }
    }

    /// Returns the environment; none if the node got no values.
    pub fn environment(&self) -> Option<EnvironmentName> {
        let Self::Classified(answer) = self else { return None };
        answer.values().get(&AnswerKey::Environment)?.value.as_str()?.parse().ok()
    }

    /// Returns the groups that match, by id.
    pub fn groups(&self) -> Vec<&DefiningGroup> {
        match self {
            Self::Classified(answer) => {
                let values = answer.values().iter();
                let groups = values.filter(|(key, _)| matches!(key, AnswerKey::Group(_)));
                groups.filter_map(|(_, it)| it.group.as_ref()).collect()
            }
            Self::Conflict(conflict) => conflict.groups.iter().collect(),
            Self::Error(_) => Vec::new(),
        }
    }

    /// Returns the ids of the groups that match, in order.
    pub fn group_ids(&self) -> impl Iterator<Item = GroupId> {
        self.groups().into_iter().map(|it| it.id)
    }

    /// Returns the classes that the node got, in order.
    pub fn classes(&self) -> impl Iterator<Item = &ClassName> {
        let values = match self {
            Self::Classified(answer) => Some(answer.values().keys()),
            Self::Conflict(_) | Self::Error(_) => None,
        };
        values.into_iter().flatten().filter_map(|key| match key {
            AnswerKey::Class(class) => Some(class),
            _ => None,
        })
    }
}

impl RuleFailure {
    fn of(error: &ClassificationError) -> Self {
        let group = DefiningGroup { id: error.group, name: error.name.clone() };
        Self { group, message: format!("{error}: {}", error.cause) }
    }
}

impl ConflictRecord {
    fn of(explanation: &Explanation<'_>, conflicts: &Conflicts<'_>) -> Self {
        let hierarchy = &explanation.estate.hierarchy;
        let matching = explanation.matches.iter();
        let groups: BTreeMap<GroupId, DefiningGroup> = matching
            .map(|it| DefiningGroup::of(hierarchy, it.group))
            .map(|group| (group.id, group))
            .collect();
        let mut summary = conflict_summary(hierarchy, conflicts);
        if summary.len() > SUMMARY {
            summary.truncate(summary.floor_char_boundary(SUMMARY));
            summary.push('…');
        }
        let details = Details { hierarchy, left: CONFLICTING_KEYS }.write(conflicts);
        Self { groups: groups.into_values().collect(), summary, details }
    }
}

/// Writes the details of a conflict up to a number of keys.
struct Details<'h> {
    hierarchy: &'h Hierarchy,
    left: usize,
}

impl Details<'_> {
    fn write(mut self, conflicts: &Conflicts<'_>) -> Value {
        let mut details = Map::new();
        if !conflicts.environment.is_empty() {
            let shares = conflicts.environment.iter().cloned();
            details.insert("environment".to_owned(), self.shares(shares));
        }
        let variables = self.keys(conflicts.variables.iter());
        let classes: Map<String, Value> = conflicts
            .classes
            .iter()
            .map(|(class, keys)| (class.to_string(), self.keys(keys.iter()).into()))
            .collect();
        let config_data: Map<String, Value> = conflicts
            .config_data
            .iter()
            .map(|(class, keys)| (class.to_string(), self.keys(keys.iter()).into()))
            .collect();
        let parts = [("variables", variables), ("classes", classes), ("config_data", config_data)];
        for (name, mut keys) in parts {
            keys.retain(|_, it| it.as_object().is_none_or(|it| !it.is_empty()));
            if !keys.is_empty() {
                details.insert(name.to_owned(), keys.into());
            }
        }
        details.into()
    }

    fn keys<'c, K: ToString + 'c>(
        &mut self,
        keys: impl Iterator<Item = (&'c K, &'c ConflictingLeaves<'c>)>,
    ) -> Map<String, Value> {
        let mut written = Map::new();
        for (key, leaves) in keys {
            let Some(left) = self.left.checked_sub(1) else { break };
            self.left = left;
            written.insert(key.to_string(), self.shares(leaves.shares()));
        }
        written
    }

    /// Writes which groups set a value, each with its value unless that is large.
    fn shares<'c>(&self, shares: impl Iterator<Item = ConflictShare<'c>>) -> Value {
        let share = |it: ConflictShare<'_>| {
            let mut written = Map::new();
            if it.value.to_string().len() <= CONFLICTING_VALUE {
                written.insert("value".to_owned(), it.value.into_owned());
            }
            written.insert("from".to_owned(), self.group(it.from));
            written.insert("defined_by".to_owned(), self.group(it.defined_by));
            Value::Object(written)
        };
        shares.take(SHARES).map(share).collect()
    }

    fn group(&self, index: GroupIndex) -> Value {
        let group = self.hierarchy.group(index);
        json!({"id": group.id, "name": group.name})
    }
}
