//! What a node gets, and why.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Group;
use super::schema::{ClassValues, Values};
use crate::model::{EnvironmentName, GroupId, GroupName, Node};

/// What a node gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Classified {
    /// Its certname.
    pub name: String,
    /// The ids of the groups that match.
    pub groups: Vec<GroupId>,
    /// Its environment.
    pub environment: EnvironmentName,
    /// Its classes with their parameters.
    #[schema(value_type = ClassValues)]
    pub classes: Values,
    /// The variables.
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// Only where there is any.
    #[schema(value_type = ClassValues, required = false)]
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub config_data: Values,
}

/// What a node gets, with the names of its groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ClassifiedV2 {
    /// Its certname.
    pub name: String,
    /// The groups that match, by name.
    pub groups: Vec<GroupRef>,
    /// Its environment.
    pub environment: EnvironmentName,
    /// Its classes with their parameters.
    #[schema(value_type = ClassValues)]
    pub classes: Values,
    /// The variables.
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// Only where there is any.
    #[schema(value_type = ClassValues, required = false)]
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub config_data: Values,
}

/// A group by id and name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupRef {
    /// Its id.
    pub id: GroupId,
    /// Its name.
    pub name: GroupName,
}

/// Why a node gets what it gets: `conflicts`, or `final_classification` and its sources, never both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The node as it was classified: `name`, `fact` and `trusted`.
    #[schema(value_type = Object)]
    pub node_as_received: Node,
    /// The rule of each group that matches, by id, with every term evaluated.
    #[schema(value_type = Object)]
    pub match_explanations: IndexMap<GroupId, Value>,
    /// The groups that match and of whose descendants none match, by id.
    #[schema(value_type = HashMap<String, Group>)]
    pub leaf_groups: IndexMap<GroupId, Group>,
    /// What each of them gives with what it inherits, by id.
    #[schema(value_type = HashMap<String, FinalClassification>)]
    pub inherited_classifications: IndexMap<GroupId, FinalClassification>,
    /// The values that are set for this node alone.
    pub individual_classification: IndividualClassification,
    /// Where the groups give different values.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<ConflictDetails>,
    /// What the node gets.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_classification: Option<FinalClassification>,
    /// Which groups define each value.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classification_sources: Option<Sources>,
}

/// What groups give.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FinalClassification {
    /// The environment.
    pub environment: EnvironmentName,
    /// The classes with their parameters.
    #[schema(value_type = ClassValues)]
    pub classes: Values,
    /// The variables.
    #[schema(value_type = Object)]
    pub variables: Map<String, Value>,
    /// Only where there is any.
    #[schema(value_type = ClassValues, required = false)]
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub config_data: Values,
}

/// The values that are set for one node alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IndividualClassification {
    /// The classes with their parameters.
    #[schema(value_type = ClassValues)]
    pub classes: Values,
    /// The variables.
    #[schema(value_type = Object)]
    pub variables: Map<String, Value>,
    /// Only where there is any.
    #[schema(value_type = ClassValues, required = false)]
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub config_data: Values,
}

/// Which groups define each value: their ids, or `node`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Sources {
    /// Of the environment.
    pub environment: Sourced,
    /// Of the classes: `puppetlabs.classifier/sources` beside the parameters has those of the class itself.
    #[schema(value_type = ClassValues)]
    pub classes: Values,
    /// Of the variables.
    #[schema(value_type = HashMap<String, Sourced>)]
    pub variables: IndexMap<String, Sourced>,
    /// Of the config data, only where there is any.
    #[schema(value_type = HashMap<String, HashMap<String, Sourced>>, required = false)]
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub config_data: IndexMap<String, IndexMap<String, Sourced>>,
}

/// A value and the groups that define it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Sourced {
    /// The value.
    pub value: Value,
    /// Ids of groups, or `node`.
    pub sources: Vec<String>,
    /// The value as it is written, only where it has a `$` and facts are put into values.
    #[schema(required = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Value>,
    /// The facts and trusted data that are put into it, by path, where it is shown as it is written; null for
    /// what the node does not have.
    #[schema(value_type = HashMap<String, Value>, required = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<IndexMap<String, Value>>,
}

/// Where groups give different values: `details` of `classification-conflict`, and part of an explanation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConflictDetails {
    /// Of the environment.
    #[schema(required = false)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<Difference>,
    /// Of the variables.
    #[schema(value_type = HashMap<String, Vec<Difference>>, required = false)]
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub variables: IndexMap<String, Vec<Difference>>,
    /// Of the classes.
    #[schema(value_type = HashMap<String, HashMap<String, Vec<Difference>>>, required = false)]
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub classes: IndexMap<String, IndexMap<String, Vec<Difference>>>,
    /// Of the config data.
    #[schema(value_type = HashMap<String, HashMap<String, Vec<Difference>>>, required = false)]
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub config_data: IndexMap<String, IndexMap<String, Vec<Difference>>>,
}

/// One of several values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Difference {
    /// The value.
    pub value: Value,
    /// The leaf group that gives it.
    pub from: Group,
    /// The group that defines it: the leaf group, or an ancestor.
    pub defined_by: Group,
}

/// What an ENC answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EncDocument {
    /// The classes with their parameters.
    #[schema(value_type = ClassValues)]
    pub classes: Values,
    /// The variables.
    #[schema(value_type = Object)]
    pub parameters: Map<String, Value>,
    /// Left out for `agent-specified`.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentName>,
}
