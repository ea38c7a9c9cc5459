//! Groups as documents of the repository.

use std::sync::Arc;

use hashbrown::HashMap;
use serde_json::{Map, Value};

use super::parent_names::ParentNames;
use crate::document::{ValueLayout, write};
use crate::hierarchy::{classes_to_value, rule_and_pins};
use crate::model::{Classes, Condition, Group, GroupId};
use crate::rule::{read, read_console, to_console, to_value};

/// The order of keys in the document of a group.
pub const ORDER: &[&str] = &[
    "name",
    "id",
    "description",
    "parent",
    "environment",
    "environment_trumps",
    "rule",
    "pinned",
    "classes",
    "config_data",
    "variables",
];

/// Returns how the values of a group are laid out, given the keys that lead to them.
pub fn house_layout(way: &[&str]) -> ValueLayout {
    match way {
        ["pinned" | "classes" | "variables" | "config_data"] => ValueLayout::Block,
        ["classes" | "config_data", _] => ValueLayout::Block,
        _ => ValueLayout::Flow,
    }
}

/// Writes a group as a file of the repository.
pub fn new_document(group: &Group, parents: &ParentNames<'_>) -> String {
    let mut fields = Map::new();
    let mut insert = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    insert("name", group.name.as_str().into());
    insert("id", group.id.to_string().into());
    if let Some(description) = &group.description {
        insert("description", description.as_ref().into());
    }
    if group.id != GroupId::ROOT {
        insert("parent", parents.parent_of(group).into());
    }
    insert("environment", group.environment.as_str().into());
    if group.environment_trumps {
        insert("environment_trumps", true.into());
    }
    let (rule, pinned) = rule_and_pins(group);
    if let Some(rule) = rule {
        insert("rule", to_value(&rule));
    }
    if !pinned.is_empty() {
        insert("pinned", names(&pinned));
    }
    for (key, classes) in [("classes", &group.classes), ("config_data", &group.config_data)] {
        if !classes.is_empty() {
            insert(key, classes_to_value(classes));
        }
    }
    if !group.variables.is_empty() {
        insert("variables", variables(group));
    }
    let mut text = write(&Value::Object(fields), &house_layout);
    // Null and `{}` are one to a class, but a reader is not left in doubt.
    if group.id == GroupId::ROOT {
        text.insert_str(0, "# The root group: every node is in it.\n");
    }
    text
}

fn names(pinned: &[Arc<str>]) -> Value {
    pinned.iter().map(|name| Value::from(name.as_ref())).collect()
}

fn variables(group: &Group) -> Value {
    let all = group.variables.iter().map(|(name, value)| (name.to_string(), value.clone()));
    Value::Object(all.collect())
}

/// Returns the document of a group after a change, keeping how it says what stays as it is.
///
/// `parent` is how it names its parent, if that changes.
pub(super) fn amended(
    document: &Value,
    before: &Group,
    after: &Group,
    parent: Option<String>,
) -> Value {
    let Value::Object(fields) = document else { return document.clone() };
    let mut fields = DocumentFields(fields.clone());
    let renamed = before.name != after.name || before.environment != after.environment;
    if renamed && !fields.0.contains_key("id") {
        // Without one, the id would follow the name.
        fields.set("id", after.id.to_string().into());
    }
    if before.name != after.name {
        fields.set("name", after.name.as_str().into());
    }
    if before.environment != after.environment {
        fields.set("environment", after.environment.as_str().into());
    }
    if before.environment_trumps != after.environment_trumps {
        fields.set("environment_trumps", after.environment_trumps.into());
    }
    if before.description != after.description {
        match &after.description {
            Some(text) => fields.set("description", text.as_ref().into()),
            None => drop(fields.0.shift_remove("description")),
        }
    }
    if let Some(parent) = parent {
        fields.set("parent", parent.into());
    }
    if before.rule != after.rule {
        amend_rule(&mut fields, before, after);
    }
    for (key, old, new) in [
        ("classes", &before.classes, &after.classes),
        ("config_data", &before.config_data, &after.config_data),
    ] {
        if old != new {
            let value = amended_classes(fields.0.get(key), new);
            fields.set_or_drop(key, value);
        }
    }
    if before.variables != after.variables {
        let old = fields.0.get("variables").and_then(Value::as_object);
        let value = ordered(old, variables(after));
        fields.set_or_drop("variables", value);
    }
    Value::Object(fields.0)
}

fn amend_rule(fields: &mut DocumentFields, before: &Group, after: &Group) {
    let ((own_before, pins_before), (own_after, pins_after)) =
        (rule_and_pins(before), rule_and_pins(after));
    let text = fields.0.get("rule").is_some_and(Value::is_string);
    let written = |rule: &Condition| {
        // A rule in the console's notation stays in it, where that says exactly the same: clients compare what they
        // sent with what they read.
        let as_text = to_console(rule).ok().filter(|_| text);
        let is_same = |it: &String| read_console(it).is_ok_and(|it| it == *rule);
        as_text.filter(is_same).map_or_else(|| to_value(rule), Value::from)
    };
    let whole = !text && !fields.0.contains_key("pinned") && !pins_before.is_empty();
    if whole {
        // The pinned nodes are part of the rule as it is written.
        match &after.rule {
            Some(rule) => fields.set("rule", to_value(rule)),
            None => drop(fields.0.shift_remove("rule")),
        }
        return;
    }
    // A rule that names nodes as pins do (`name = a or name = b`) counts as pins, wherever it is
    // written: what is pinned afterwards stands below `pinned` alone.
    let has_pins = fields.0.get("rule").is_some_and(|it| read(it).ok() != own_before);
    let moves_pins = has_pins && pins_before != pins_after;
    if own_before != own_after || moves_pins {
        match &own_after {
            Some(rule) => {
                let value = written(rule);
                fields.set("rule", value);
            }
            None => drop(fields.0.shift_remove("rule")),
        }
    }
    if pins_before != pins_after {
        fields.set_or_drop("pinned", names(&pins_after));
    }
}

/// Returns the classes of a document after a change.
fn amended_classes(document: Option<&Value>, classes: &Classes) -> Value {
    let old = document.and_then(Value::as_object);
    let Value::Object(new) = classes_to_value(classes) else { return Value::Null };
    // A class may be written with a leading `::`.
    let mut spelled: HashMap<&str, &String> = HashMap::new();
    for key in old.into_iter().flat_map(Map::keys) {
        spelled.entry(key.strip_prefix("::").unwrap_or(key)).or_insert(key);
    }
    let mut respelled = Map::new();
    for (name, parameters) in new {
        let key = spelled.get(name.as_str()).map_or(name, |it| (*it).clone());
        let before = old.and_then(|old| old.get(&key));
        let empty = parameters.as_object().is_some_and(Map::is_empty);
        let value = match before {
            // Null and `{}` are one, and stay as they are written.
            Some(Value::Null) if empty => Value::Null,
            Some(Value::Object(before)) => ordered(Some(before), parameters),
            _ => parameters,
        };
        respelled.insert(key, value);
    }
    ordered(old, Value::Object(respelled))
}

/// Puts keys in the order of the document; new ones are put where they belong if that order is
/// that of the alphabet, or else at the end.
fn ordered(old: Option<&Map<String, Value>>, new: Value) -> Value {
    let (Some(old), Value::Object(mut new)) = (old, new.clone()) else { return new };
    let mut keys: Vec<String> = old.keys().filter(|it| new.contains_key(*it)).cloned().collect();
    let is_sorted = keys.len() > 1 && keys.is_sorted();
    keys.extend(new.keys().filter(|it| !old.contains_key(*it)).cloned());
    if is_sorted {
        keys.sort_unstable();
    }
    let mut value = |key: &String| new.get_mut(key).map(Value::take).unwrap_or_default();
    let all: Map<String, Value> = keys.into_iter().map(|key| (key.clone(), value(&key))).collect();
    all.into()
}

/// The keys of a document, in its order.
struct DocumentFields(Map<String, Value>);

impl DocumentFields {
    /// Sets a key; a new one is put behind those that it follows in the order of the house.
    fn set(&mut self, key: &str, value: Value) {
        if let Some(place) = self.0.get_mut(key) {
            *place = value;
            return;
        }
        let rank = |key: &str| ORDER.iter().position(|it| *it == key).unwrap_or(ORDER.len());
        let before = self.0.keys().rposition(|it| rank(it) < rank(key));
        self.0.shift_insert(before.map_or(0, |at| at + 1), key.to_owned(), value);
    }

    fn set_or_drop(&mut self, key: &str, value: Value) {
        let empty = match &value {
            Value::Object(fields) => fields.is_empty(),
            Value::Array(elements) => elements.is_empty(),
            other => other.is_null(),
        };
        if empty {
            self.0.shift_remove(key);
        } else {
            self.set(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(keys: &[u32]) -> Map<String, Value> {
        keys.iter().map(|it| (format!("k{it:06}"), Value::from(*it))).collect()
    }

    /// Puts keys in order one by one, as [`ordered`] does at once.
    fn one_by_one(old: &Map<String, Value>, mut new: Map<String, Value>) -> Map<String, Value> {
        let mut all = Map::new();
        for key in old.keys() {
            all.extend(new.shift_remove(key).map(|value| (key.clone(), value)));
        }
        let is_sorted = all.len() > 1 && all.keys().is_sorted();
        for (key, value) in new {
            let at = all.keys().position(|it| *it > key).filter(|_| is_sorted);
            all.shift_insert(at.unwrap_or(all.len()), key, value);
        }
        all
    }

    #[test]
    fn keys_have_the_order_that_they_have_one_by_one() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut keys = |sorts: bool| {
            let mut keys: Vec<u32> = (0..rng.usize(..8)).map(|_| rng.u32(..12)).collect();
            if sorts {
                keys.sort_unstable();
            }
            keys
        };
        for round in 0..2_000 {
            let (old, new) = (object(&keys(round % 2 == 0)), object(&keys(false)));
            let expected = one_by_one(&old, new.clone());
            let found = ordered(Some(&old), new.into());
            assert_eq!(found.to_string(), Value::from(expected).to_string());
        }
    }

    /// To take out one of many keys moved all behind it.
    #[test]
    fn many_keys_are_put_in_order() {
        let keys: Vec<u32> = (0..120_000).collect();
        let old = object(&keys);
        let found = ordered(Some(&old), object(&keys).into());
        assert!(found.as_object().unwrap().keys().eq(old.keys()));
    }
}
