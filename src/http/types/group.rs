//! Groups, their trees and their rules.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};
use utoipa::ToSchema;

use super::schema::{ClassValues, Values};
use crate::hierarchy::{Estate, GroupIndex, InheritedClass, View, deleted_classes, inherited_rule};
use crate::history::Edit;
use crate::model::{
    self, ClassName, Classes, Condition, EnvironmentName, GroupId, GroupName, Key, Table,
};
use crate::rule;

/// A node group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// Its name.
    pub name: GroupName,
    /// Its id.
    pub id: GroupId,
    /// What it is for.
    #[schema(nullable = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The environment that its nodes get.
    pub environment: EnvironmentName,
    /// Whether the environment wins over those of other groups.
    pub environment_trumps: bool,
    /// The id of its parent; the root group is its own.
    pub parent: GroupId,
    /// Which nodes match; absent for a group that matches none itself.
    #[schema(value_type = Condition, required = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Value>,
    /// Its classes with their parameters.
    #[schema(value_type = ClassValues)]
    pub classes: Values,
    /// Its variables.
    #[schema(value_type = Object)]
    pub variables: Map<String, Value>,
    /// Its data for Hiera.
    #[schema(value_type = ClassValues)]
    pub config_data: Values,
    /// The classes and parameters that the environment's catalogue does not have; a class that it does not
    /// have stands alone. Absent if it has them all. Ignored in bodies.
    #[schema(value_type = Object, required = false)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Value>,
    /// When the group was edited last, with milliseconds; absent where that is not known (yet). Ignored in bodies.
    #[schema(nullable = false, format = DateTime)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_edited: Option<String>,
    /// How many commits made or edited the group; absent where that is not known (yet). Ignored in bodies, but
    /// for a delta: where it is not that of the group, 409.
    #[schema(nullable = false, minimum = 1)]
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "serial_number")]
    pub serial_number: Option<u64>,
}

impl From<&model::Group> for Group {
    fn from(group: &model::Group) -> Self {
        Self {
            name: group.name.clone(),
            id: group.id,
            description: group.description.as_deref().map(str::to_owned),
            environment: group.environment.clone(),
            environment_trumps: group.environment_trumps,
            parent: group.parent,
            rule: group.rule.as_deref().map(rule::to_value),
            classes: values(&group.classes),
            variables: group.variables.iter().map(own).collect(),
            config_data: values(&group.config_data),
            deleted: None,
            last_edited: None,
            serial_number: None,
        }
    }
}

/// Copies a key and its value.
fn own<K: ToString>((key, value): (&K, &Value)) -> (String, Value) {
    (key.to_string(), value.clone())
}

fn values(classes: &Classes) -> Values {
    let parameters = |(class, of_it): (&ClassName, &Table<Key, Value>)| {
        (class.to_string(), of_it.iter().map(own).collect())
    };
    classes.iter().map(parameters).collect()
}

fn inherited_values(classes: &BTreeMap<&ClassName, InheritedClass<'_>>) -> Values {
    let parameters = |(class, of_it): (&&ClassName, &InheritedClass<'_>)| {
        let parameters =
            of_it.parameters.iter().map(|(key, it)| (key.to_string(), it.value.clone()));
        (class.to_string(), parameters.collect())
    };
    classes.iter().map(parameters).collect()
}

impl Group {
    /// Returns a group of an estate, with what its catalogue does not have.
    pub(in crate::http) fn shown(estate: &Estate, index: GroupIndex, view: View) -> Self {
        let hierarchy = &estate.hierarchy;
        let own = Self::from(hierarchy.group(index));
        let deleted = deleted_classes(estate, index, view);
        if view == View::Own {
            return Self { deleted, ..own };
        }
        let inherited = hierarchy.inherited(index);
        let variables = inherited.variables.iter();
        Self {
            rule: inherited_rule(hierarchy, index).as_ref().map(rule::to_value),
            classes: inherited_values(&inherited.classes),
            variables: variables.map(|(name, it)| (name.to_string(), it.value.clone())).collect(),
            config_data: inherited_values(&inherited.config_data),
            deleted,
            ..own
        }
    }

    /// Returns the group with how often it was edited and when last, as far as that is known.
    #[must_use]
    pub(in crate::http) fn edited(mut self, edit: Option<Edit>) -> Self {
        if let Some(Edit { serial, time }) = edit {
            // Clients know the time with milliseconds.
            self.last_edited = time.map(|it| format!("{it:.3}"));
            self.serial_number = serial;
        }
        self
    }
}

/// A group with those below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GroupTree {
    /// The group.
    #[serde(flatten)]
    pub group: Group,
    /// How many children it has, shown or not.
    pub immediate_child_count: usize,
    /// Those that are shown.
    #[schema(no_recursion)]
    pub children: Vec<Self>,
}

/// The rules of a group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GroupRules {
    /// Its own; null if it has none.
    #[schema(value_type = Option<Condition>, required)]
    pub rule: Option<Value>,
    /// Its own joined with those of its ancestors.
    #[schema(value_type = Option<Condition>, required)]
    pub rule_with_inherited: Option<Value>,
    /// The latter as queries of `PuppetDB`.
    pub translated: TranslatedRule,
}

/// A rule as queries of `PuppetDB`; null where no query says the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TranslatedRule {
    /// For `nodes`.
    pub nodes_query_format: Value,
    /// For `inventory`.
    pub inventory_query_format: Value,
}

/// A query of `PuppetDB`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Query {
    /// The query.
    pub query: Value,
}

/// The nodes in a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupNodes {
    /// Their certnames.
    pub nodes: Vec<String>,
}

/// Reads a number of a field that is flattened: serde keeps it as `serde_json` writes a number of any precision,
/// which only that reads.
fn serial_number<'de, D: Deserializer<'de>>(field: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Number>::deserialize(field)?.as_ref().and_then(Number::as_u64))
}
