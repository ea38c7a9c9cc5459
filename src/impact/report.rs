//! The impact of a change on a set of nodes: nodes with the same change stand together.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::groups::{GroupChange, How};
use super::nodes::{Change, Difference, GroupName, NodeChange, ValueChange, ValueKind};

/// What a change does to a set of nodes.
#[derive(Debug, Default)]
pub struct Impact {
    /// The groups that differ.
    pub groups: Vec<GroupChange>,
    /// How many nodes were compared.
    pub nodes: usize,
    /// The nodes that get something else, those with the same change together; the most nodes
    /// first.
    pub entries: Vec<Entry>,
}

/// Nodes with the same change.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Their names, in order.
    pub nodes: Vec<String>,
    /// What they get differently.
    pub change: NodeChange,
}

impl Impact {
    /// Gathers the changes of nodes.
    pub fn gather(
        groups: Vec<GroupChange>,
        nodes: usize,
        changed: impl IntoIterator<Item = (String, NodeChange)>,
    ) -> Self {
        // What is written is what is the same: numbers that are equal are written alike.
        let mut by_change: HashMap<String, Entry> = HashMap::new();
        for (name, change) in changed {
            let key = Value::from(change.changes.iter().map(change_to_value).collect::<Vec<_>>());
            let fresh = || Entry { nodes: Vec::new(), change };
            by_change.entry(key.to_string()).or_insert_with(fresh).nodes.push(name);
        }
        let mut entries: Vec<Entry> = by_change.into_values().collect();
        for entry in &mut entries {
            entry.nodes.sort_unstable();
        }
        entries.sort_by(|a, b| (b.nodes.len(), &a.nodes).cmp(&(a.nodes.len(), &b.nodes)));
        Self { groups, nodes, entries }
    }

    /// Returns how many nodes get something else.
    pub fn changed(&self) -> usize {
        self.entries.iter().map(|it| it.nodes.len()).sum()
    }

    /// Returns how many nodes get a conflict that they did not have, and how many lose one.
    pub fn conflicts(&self) -> (usize, usize) {
        let mut counts = (0, 0);
        for entry in &self.entries {
            for change in &entry.change.changes {
                if let Difference::Conflict(conflict) = &change.what {
                    match (&conflict.old, &conflict.new) {
                        (None, Some(_)) => counts.0 += entry.nodes.len(),
                        (Some(_), None) => counts.1 += entry.nodes.len(),
                        _ => {}
                    }
                }
            }
        }
        counts
    }

    /// Writes the parts of the machine format that are about groups and nodes.
    pub fn to_value(&self) -> Value {
        let (appearing, disappearing) = self.conflicts();
        let change = |entry: &Entry| {
            let mut value = node_change_to_value(&entry.change);
            if let Value::Object(fields) = &mut value {
                fields.insert("count".to_owned(), entry.nodes.len().into());
                fields.insert("nodes".to_owned(), json!(entry.nodes));
                fields.insert("causes".to_owned(), self.all_causes(&entry.change).into());
            }
            value
        };
        json!({
            "summary": {
                "nodes": self.nodes,
                "changed": self.changed(),
                "conflicts_appearing": appearing,
                "conflicts_disappearing": disappearing,
            },
            "groups": self.groups.iter().map(group_to_value).collect::<Vec<_>>(),
            "changes": self.entries.iter().map(change).collect::<Vec<_>>(),
        })
    }

    fn all_causes(&self, change: &NodeChange) -> Vec<Value> {
        let mut causes: Vec<usize> =
            change.changes.iter().flat_map(|it| it.causes.clone()).collect();
        causes.sort_unstable();
        causes.dedup();
        causes.into_iter().filter_map(|it| self.groups.get(it)).map(group_to_value).collect()
    }
}

fn group_to_value(change: &GroupChange) -> Value {
    let mut value = json!({
        "change": change.how.as_str(),
        "id": change.id.to_string(),
        "name": change.name,
        "file": change.file,
        "line": change.line,
    });
    if let Value::Object(fields) = &mut value {
        match &change.how {
            How::Modified(parts) => {
                let parts: Vec<&str> = parts.iter().map(|it| it.as_str()).collect();
                fields.insert("parts".to_owned(), json!(parts));
            }
            How::Renamed { from, name, parts } => {
                let parts: Vec<&str> = parts.iter().map(|it| it.as_str()).collect();
                fields.insert("parts".to_owned(), json!(parts));
                fields.insert("from".to_owned(), json!({"id": from.to_string(), "name": name}));
            }
            How::Added | How::Removed => {}
        }
    }
    value
}

fn name_to_value(group: &GroupName) -> Value {
    json!({"id": group.id.to_string(), "name": group.name})
}

/// Writes one change with the numbers of its causes.
fn change_to_value(change: &Change) -> Value {
    let what = match &change.what {
        Difference::Entered(group) => json!({"entered": name_to_value(group)}),
        Difference::Left(group) => json!({"left": name_to_value(group)}),
        Difference::Renamed { from, to } => {
            json!({"from": name_to_value(from), "to": name_to_value(to)})
        }
        Difference::Conflict(it) => json!({"conflict": [it.old, it.new]}),
        Difference::Environment { old, new } => json!({"environment": [old, new]}),
        Difference::ClassAdded(class) => json!({"added": class}),
        Difference::ClassRemoved(class) => json!({"removed": class}),
        Difference::Value(it) => value_to_value(it),
    };
    json!([what, change.causes])
}

fn value_to_value(change: &ValueChange) -> Value {
    let ValueChange { kind, class, name, old, new } = change;
    match kind {
        ValueKind::Parameter => json!({"class": class, "parameter": name, "old": old, "new": new}),
        ValueKind::ConfigData => json!({"class": class, "key": name, "old": old, "new": new}),
        ValueKind::Variable => json!({"name": name, "old": old, "new": new}),
    }
}

fn node_change_to_value(change: &NodeChange) -> Value {
    let mut groups = json!({"entered": [], "left": [], "renamed": []});
    let mut classes = json!({"added": [], "removed": []});
    let mut lists = json!({"parameters": [], "variables": [], "config_data": []});
    let (mut environment, mut conflict) = (Value::Null, Value::Null);
    let push = |object: &mut Value, key: &str, value: Value| {
        if let Some(Value::Array(list)) = object.get_mut(key) {
            list.push(value);
        }
    };
    for it in &change.changes {
        match &it.what {
            Difference::Entered(group) => push(&mut groups, "entered", name_to_value(group)),
            Difference::Left(group) => push(&mut groups, "left", name_to_value(group)),
            Difference::Renamed { from, to } => {
                let value = json!({"from": name_to_value(from), "to": name_to_value(to)});
                push(&mut groups, "renamed", value);
            }
            Difference::Conflict(it) => conflict = json!({"old": it.old, "new": it.new}),
            Difference::Environment { old, new } => environment = json!({"old": old, "new": new}),
            Difference::ClassAdded(class) => push(&mut classes, "added", json!(class)),
            Difference::ClassRemoved(class) => push(&mut classes, "removed", json!(class)),
            Difference::Value(it) => {
                let key = match it.kind {
                    ValueKind::Parameter => "parameters",
                    ValueKind::Variable => "variables",
                    ValueKind::ConfigData => "config_data",
                };
                push(&mut lists, key, value_to_value(it));
            }
        }
    }
    let mut value = json!({
        "count": 0, "nodes": [], "groups": groups, "environment": environment,
        "classes": classes,
    });
    if let (Value::Object(all), Value::Object(lists)) = (&mut value, lists) {
        all.extend(lists);
        all.insert("conflict".to_owned(), conflict);
    }
    value
}
