//! Groups in the form that the classifier API publishes.

use serde_json::{Map, Value};

use super::{GroupIndex, Hierarchy, InheritedClass, inherited_rule};
use crate::model::{ClassName, Classes, Group, Table};
use crate::rule;

/// Writes a group as the classifier API does; `rule` and `description` are left out where the
/// group has none.
pub fn group_to_value(group: &Group) -> Value {
    let mut fields = head(group);
    if let Some(rule) = &group.rule {
        fields.insert("rule".to_owned(), rule::to_value(rule));
    }
    fields.insert("classes".to_owned(), classes_to_value(&group.classes));
    fields.insert("variables".to_owned(), to_map(&group.variables).into());
    fields.insert("config_data".to_owned(), classes_to_value(&group.config_data));
    Value::Object(fields)
}

/// Writes a group with the classes, variables and config data it inherits, and its rule joined
/// with those of its ancestors.
pub fn inherited_group_to_value(hierarchy: &Hierarchy, index: GroupIndex) -> Value {
    let inherited = hierarchy.inherited(index);
    let mut fields = head(hierarchy.group(index));
    if let Some(rule) = inherited_rule(hierarchy, index) {
        fields.insert("rule".to_owned(), rule::to_value(&rule));
    }
    let variables: Map<String, Value> =
        inherited.variables.iter().map(|(name, it)| (name.to_string(), it.value.clone())).collect();
    fields.insert("classes".to_owned(), inherited_classes_to_value(&inherited.classes));
    fields.insert("variables".to_owned(), variables.into());
    fields.insert("config_data".to_owned(), inherited_classes_to_value(&inherited.config_data));
    Value::Object(fields)
}

fn head(group: &Group) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut insert = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    insert("name", group.name.as_str().into());
    insert("id", group.id.to_string().into());
    if let Some(description) = &group.description {
        insert("description", description.as_ref().into());
    }
    insert("environment", group.environment.as_str().into());
    insert("environment_trumps", group.environment_trumps.into());
    insert("parent", group.parent.to_string().into());
    fields
}

/// Writes classes with their parameters.
pub fn classes_to_value(classes: &Classes) -> Value {
    classes
        .iter()
        .map(|(class, parameters)| (class.to_string(), to_map(parameters).into()))
        .collect::<Map<String, Value>>()
        .into()
}

/// Writes inherited classes with their parameters.
pub(crate) fn inherited_classes_to_value(
    classes: &std::collections::BTreeMap<&ClassName, InheritedClass<'_>>,
) -> Value {
    let parameters = |class: &InheritedClass<'_>| -> Map<String, Value> {
        class.parameters.iter().map(|(key, it)| (key.to_string(), it.value.clone())).collect()
    };
    classes
        .iter()
        .map(|(name, class)| (name.to_string(), parameters(class).into()))
        .collect::<Map<String, Value>>()
        .into()
}

fn to_map<K: ToString>(values: &Table<K, Value>) -> Map<String, Value> {
    values.iter().map(|(key, value)| (key.to_string(), value.clone())).collect()
}
