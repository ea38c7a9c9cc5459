//! Groups in the form that the classifier API publishes.

use serde_json::{Map, Value, json};

use super::{Catalogue, Estate, GroupIndex, InheritedClass, has_parameter};
use crate::model::{ClassName, Classes, Group, Key, Table};
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

/// Which values of a group are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Its own.
    Own,
    /// Those that it inherits as well.
    Inherited,
}

/// Returns the classes and parameters of a group that the catalogue of its environment does not have, if there
/// are any: of its own, or of those that it inherits as well.
pub fn deleted_classes(estate: &Estate, index: GroupIndex, view: View) -> Option<Value> {
    let hierarchy = &estate.hierarchy;
    let group = hierarchy.group(index);
    let catalogue = estate.catalogues.get(&group.environment)?;
    match view {
        View::Own => {
            deleted(catalogue, group.classes.iter().map(|(class, of_it)| (class, of_it.iter())))
        }
        View::Inherited => {
            let inherited = hierarchy.inherited(index);
            let classes = inherited.classes.iter().map(|(class, of_it)| {
                (*class, of_it.parameters.iter().map(|(key, it)| (*key, it.value)))
            });
            deleted(catalogue, classes)
        }
    }
}

/// Returns which classes and parameters a catalogue does not have; none if it has them all.
///
/// A class that is gone stands alone: its parameters went with it. Of any other class the parameters
/// that are gone are named.
fn deleted<'v, P>(
    catalogue: &Catalogue,
    classes: impl Iterator<Item = (&'v ClassName, P)>,
) -> Option<Value>
where
    P: Iterator<Item = (&'v Key, &'v Value)>,
{
    const DELETED: &str = "puppetlabs.classifier/deleted";
    let mut all = Map::new();
    for (class, parameters) in classes {
        let Some(known) = catalogue.classes.get(class) else {
            all.insert(class.to_string(), json!({DELETED: true}));
            continue;
        };
        let gone: Map<String, Value> = parameters
            // A null needs no parameter: it removes an inherited value.
            .filter(|(key, value)| !value.is_null() && !has_parameter(known, key))
            .map(|(key, value)| (key.to_string(), json!({DELETED: true, "value": value})))
            .collect();
        if !gone.is_empty() {
            let mut entry = Map::from_iter([(DELETED.to_owned(), false.into())]);
            entry.extend(gone);
            all.insert(class.to_string(), entry.into());
        }
    }
    (!all.is_empty()).then(|| all.into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_catalogue_lacks_is_deleted() {
        let classes = |value: Value| serde_json::from_value::<Classes>(value).unwrap();
        let catalogue = Catalogue { classes: classes(json!({"apache": {"port": 80}, "ntp": {}})) };
        let found = |value: Value| {
            let classes = classes(value);
            deleted(&catalogue, classes.iter().map(|(class, of_it)| (class, of_it.iter())))
        };
        assert_eq!(found(json!({"apache": {"port": 81}, "ntp": {"noop": true}})), None);
        assert_eq!(
            found(json!({"apache": {"port": 81, "gone": [1]}, "ntp": {}, "old": {"p": null}})),
            Some(json!({
                "apache": {
                    "puppetlabs.classifier/deleted": false,
                    "gone": {"puppetlabs.classifier/deleted": true, "value": [1]},
                },
                "old": {"puppetlabs.classifier/deleted": true},
            }))
        );
        assert_eq!(
            found(json!({"old": {}})),
            Some(json!({"old": {"puppetlabs.classifier/deleted": true}}))
        );
    }
}
