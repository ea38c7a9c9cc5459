//! Nodes as the store knows them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::answer::{self, Answer, AnswerKey, AnswerRecord, DefiningGroup};
use crate::model::{ClassName, CommitId, EnvironmentName, GroupId};
use crate::store;

/// A page of the nodes that the store knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodePage {
    /// How many nodes meet the conditions.
    pub total: u64,
    /// Those of the page, in the order that the request asks for.
    pub nodes: Vec<NodeSummary>,
    /// The place behind them, for `after`; absent on the last page.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A node in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeSummary {
    /// Its certname.
    pub name: String,
    /// When it was seen last.
    pub last_seen: Timestamp,
    /// The commit that answered it last; null if it only submitted facts.
    #[schema(required)]
    pub commit: Option<CommitId>,
    /// The environment that it got; null unless it is classified.
    #[schema(required)]
    pub environment: Option<EnvironmentName>,
    /// The groups that match, by id.
    pub groups: Vec<StoredGroup>,
    /// What came of its last classification: `classified`, `conflict` or `error`; null if it only submitted
    /// facts.
    #[schema(required, value_type = Option<String>)]
    pub state: Option<answer::NodeState>,
    /// When it first got its answer without another one since; null if it only submitted facts.
    #[schema(required)]
    pub since: Option<Timestamp>,
}

/// A group, as it was called when a node got an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StoredGroup {
    /// Its id.
    pub id: GroupId,
    /// Its name.
    pub name: String,
}

/// All that is known of a node but its history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StoredNode {
    /// Its certname.
    pub name: String,
    /// When it was seen last.
    pub last_seen: Timestamp,
    /// The commit that answered it last; null if it only submitted facts.
    #[schema(required)]
    pub commit: Option<CommitId>,
    /// When it first got its answer without another one since; null if it only submitted facts.
    #[schema(required)]
    pub since: Option<Timestamp>,
    /// Which run of the agent it was seen for, as the agent says.
    #[schema(required)]
    pub transaction_uuid: Option<String>,
    /// Its newest facts, as far as they are stored.
    #[schema(value_type = Object)]
    pub facts: Map<String, Value>,
    /// Its newest trusted data.
    #[schema(value_type = Object)]
    pub trusted: Map<String, Value>,
    /// What it got last; null if it only submitted facts.
    #[schema(required)]
    pub answer: Option<NodeAnswer>,
}

/// What a node got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeAnswer {
    /// What came of the classification: `classified`, `conflict` or `error`.
    #[schema(value_type = String)]
    pub state: answer::NodeState,
    /// The groups that match, by id; none with an error.
    pub groups: Vec<StoredGroup>,
    /// The environment, if it is classified.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentName>,
    /// The classes with their parameters, if it is classified.
    #[schema(value_type = Object, required = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Map<String, Value>>,
    /// The variables, if it is classified.
    #[schema(value_type = Object, required = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<Map<String, Value>>,
    /// The config data, if it is classified and there is any.
    #[schema(value_type = Object, required = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_data: Option<Map<String, Value>>,
    /// The conflict, if the groups that match differ.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflict: Option<NodeConflict>,
    /// The error, if it could not be found out which groups match.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<NodeFailure>,
}

/// Groups that a node matches differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeConflict {
    /// Which groups differ, and in what, in words.
    pub summary: String,
    /// As in the `details` of the error, with the id and the name of each group in place of the whole group.
    #[schema(value_type = Object)]
    pub details: Value,
}

/// A rule could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeFailure {
    /// The group of the rule.
    pub group: StoredGroup,
    /// What went wrong.
    pub message: String,
}

impl From<DefiningGroup> for StoredGroup {
    fn from(DefiningGroup { id, name }: DefiningGroup) -> Self {
        Self { id, name }
    }
}

impl From<store::NodePage> for NodePage {
    fn from(page: store::NodePage) -> Self {
        let store::NodePage { total, nodes, next } = page;
        let nodes = nodes.into_iter().map(NodeSummary::from).collect();
        Self { total, nodes, next: next.map(|it| it.to_string()) }
    }
}

impl From<store::NodeSummary> for NodeSummary {
    fn from(node: store::NodeSummary) -> Self {
        let store::NodeSummary { name, last_seen, commit, answer } = node;
        let (state, since) = answer.as_ref().map(|it| (it.state, it.since)).unzip();
        let (environment, groups) =
            answer.map(|it| (it.environment, it.groups)).unwrap_or_default();
        let groups = groups.into_iter().map(StoredGroup::from).collect();
        Self { name, last_seen, commit, environment, groups, state, since }
    }
}

impl From<store::StoredNode> for StoredNode {
    fn from(stored: store::StoredNode) -> Self {
        let store::StoredNode { node, last_seen, transaction_uuid, commit, answer } = stored;
        let (answer, since) = answer.unzip();
        Self {
            name: node.name,
            last_seen,
            commit,
            since,
            transaction_uuid,
            facts: node.fact,
            trusted: node.trusted,
            answer: answer.map(NodeAnswer::from),
        }
    }
}

impl From<AnswerRecord> for NodeAnswer {
    fn from(record: AnswerRecord) -> Self {
        let groups = record.groups().into_iter().cloned().map(StoredGroup::from).collect();
        let mut answer = Self {
            state: record.state(),
            groups,
            environment: record.environment(),
            classes: None,
            variables: None,
            config_data: None,
            conflict: None,
            error: None,
        };
        match record {
            AnswerRecord::Classified(values) => answer.take_values(&values),
            AnswerRecord::Conflict(it) => {
                answer.conflict = Some(NodeConflict { summary: it.summary, details: it.details });
            }
            AnswerRecord::Error(it) => {
                answer.error = Some(NodeFailure { group: it.group.into(), message: it.message });
            }
        }
        answer
    }
}

impl NodeAnswer {
    fn take_values(&mut self, values: &Answer) {
        let mut variables = Map::new();
        let (mut classes, mut config_data) = (ByClass::new(), ByClass::new());
        for (key, it) in values.values() {
            let value = it.value.clone();
            match key {
                AnswerKey::Environment | AnswerKey::Group(_) => {}
                AnswerKey::Class(class) => {
                    classes.entry(class).or_default();
                }
                AnswerKey::Parameter(class, key) => {
                    classes.entry(class).or_default().insert(key.to_string(), value);
                }
                AnswerKey::Variable(name) => {
                    variables.insert(name.to_string(), value);
                }
                AnswerKey::ConfigData(class, key) => {
                    config_data.entry(class).or_default().insert(key.to_string(), value);
                }
            }
        }
        let object = |classes: ByClass<'_>| -> Map<String, Value> {
            classes.into_iter().map(|(class, keys)| (class.to_string(), keys.into())).collect()
        };
        self.classes = Some(object(classes));
        self.variables = Some(variables);
        self.config_data = Some(object(config_data)).filter(|it| !it.is_empty());
    }
}

/// Keys with their values, by class.
type ByClass<'a> = BTreeMap<&'a ClassName, Map<String, Value>>;
