//! The machine format of an impact.

use std::collections::BTreeSet;

use serde::ser::{SerializeMap as _, SerializeStruct as _};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::groups::{GroupChange, How};
use super::node_files::NodeFileChange;
use super::nodes::{Change, ChangeRef, Difference, GroupName, ReportEntry, ValueChange, ValueKind};
use super::report::{CausingChange, INTERPOLATION, Impact};
use super::survey::NodeCounts;

/// The parts of the machine format that are about groups and nodes: entry by entry, since each may be large.
impl Serialize for Impact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Impact", 4)?;
        fields.serialize_field("summary", &self.summary())?;
        fields.serialize_field("groups", &self.groups_to_value())?;
        fields.serialize_field("node_files", &self.node_files_to_value())?;
        fields.serialize_field("changes", &WrittenEntries(self))?;
        fields.end()
    }
}

struct WrittenEntries<'i>(&'i Impact);

impl Serialize for WrittenEntries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.entries.iter().map(|it| self.0.written_entry(it)))
    }
}

/// Nodes with the same change: reason by reason, since each may name many causes.
struct WrittenNodes<'i> {
    impact: &'i Impact,
    entry: &'i ReportEntry,
}

impl Serialize for WrittenNodes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { impact, entry } = self;
        let fields = impact.entry_to_fields(entry);
        let mut all = serializer.serialize_map(Some(fields.len() + 1))?;
        for (name, value) in &fields {
            all.serialize_entry(name, value)?;
        }
        all.serialize_entry(REASONS, &WrittenReasons { impact, entry })?;
        all.end()
    }
}

struct WrittenReasons<'i> {
    impact: &'i Impact,
    entry: &'i ReportEntry,
}

impl Serialize for WrittenReasons<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.impact.reasons(self.entry))
    }
}

/// The field of an entry that says what causes each difference.
pub const REASONS: &str = "because";

impl Impact {
    /// Writes how many nodes change, and how.
    pub fn summary(&self) -> Value {
        let Self { nodes, counts, .. } = self;
        let NodeCounts {
            conflicts_appearing,
            conflicts_disappearing,
            conflicts_staying,
            errors_appearing,
            errors_disappearing,
            errors_staying,
            unclassified_before,
            unclassified_after,
        } = counts;
        json!({
            "nodes": nodes,
            "changed": self.changed(),
            "conflicts_appearing": conflicts_appearing,
            "conflicts_disappearing": conflicts_disappearing,
            "conflicts_staying": conflicts_staying,
            "errors_appearing": errors_appearing,
            "errors_disappearing": errors_disappearing,
            "errors_staying": errors_staying,
            "unclassified_before": unclassified_before,
            "unclassified_after": unclassified_after,
        })
    }

    /// Writes the groups that differ.
    pub fn groups_to_value(&self) -> Value {
        self.groups.iter().map(group_to_value).collect()
    }

    /// Writes the files of nodes that differ.
    pub fn node_files_to_value(&self) -> Value {
        self.node_files.iter().map(node_file_to_value).collect()
    }

    /// Returns nodes with the same change, as they are written.
    pub fn written_entry<'i>(&'i self, entry: &'i ReportEntry) -> impl Serialize + use<'i> {
        WrittenNodes { impact: self, entry }
    }

    /// Writes nodes with the same change, except for [`reasons`](Self::reasons), which are the last field.
    pub fn entry_to_fields(&self, entry: &ReportEntry) -> Map<String, Value> {
        let mut fields = changes_to_fields(entry);
        fields.insert("count".to_owned(), entry.nodes.len().into());
        fields.insert("nodes".to_owned(), json!(entry.nodes));
        fields.insert("causes".to_owned(), self.all_causes(entry).into());
        fields
    }

    /// Writes what causes each difference of some nodes, one after the other.
    pub fn reasons<'i>(&'i self, entry: &'i ReportEntry) -> impl Iterator<Item = Value> + use<'i> {
        entry.changes.iter().map(|it| self.reason_to_value(it))
    }

    fn all_causes(&self, entry: &ReportEntry) -> Vec<Value> {
        let causes = entry.changes.iter().flat_map(|it| it.causes.changes().iter().copied());
        let causes: BTreeSet<ChangeRef> = causes.collect();
        self.causes_to_value(causes)
    }

    fn causes_to_value(&self, causes: impl IntoIterator<Item = ChangeRef>) -> Vec<Value> {
        causes.into_iter().filter_map(|it| self.cause(it)).map(cause_to_value).collect()
    }

    /// Writes what causes one difference, and how.
    fn reason_to_value(&self, change: &Change) -> Value {
        let causes = change.causes.changes().iter().filter_map(|it| self.cause(*it));
        let causes: Vec<Value> = causes
            .map(|cause| {
                let mut value = cause_to_value(cause);
                if let Some(line) = value.get_mut("line") {
                    *line = cause.line(&change.what).into();
                }
                value
            })
            .collect();
        json!({
            "what": change.what.subject(),
            "name": change.what.name(),
            "decision": change.causes.as_str(),
            "causes": causes,
        })
    }
}

impl Difference {
    /// Returns what it is about, in the word of the machine format.
    pub(super) fn subject(&self) -> &'static str {
        match self {
            Self::Entered(_) | Self::Left(_) | Self::Renamed { .. } => "group",
            Self::Conflict(_) => "conflict",
            Self::Error(_) => "error",
            Self::Environment { .. } => "environment",
            Self::ClassAdded(_) | Self::ClassRemoved(_) => "class",
            Self::Value(change) => change.kind.as_str(),
        }
    }

    /// Returns the name of the group, the class or the value.
    fn name(&self) -> Option<String> {
        match self {
            Self::Entered(group) | Self::Left(group) | Self::Renamed { to: group, .. } => {
                Some(group.name.clone())
            }
            Self::Conflict(_) | Self::Error(_) | Self::Environment { .. } => None,
            Self::ClassAdded(class) | Self::ClassRemoved(class) => Some(class.clone()),
            Self::Value(it) => Some(match &it.class {
                Some(class) => format!("{class}::{}", it.name),
                None => it.name.clone(),
            }),
        }
    }
}

fn cause_to_value(cause: CausingChange<'_>) -> Value {
    match cause {
        CausingChange::Group(change) => group_to_value(change),
        CausingChange::NodeFile(change) => node_file_to_value(change),
        CausingChange::Interpolation => json!({"change": "modified", "setting": INTERPOLATION}),
    }
}

fn node_file_to_value(change: &NodeFileChange) -> Value {
    let mut value = json!({
        "change": change.how.as_str(),
        "node": change.node,
        "file": change.file,
        "line": change.line,
    });
    if let (Value::Object(fields), How::Modified(keys)) = (&mut value, &change.how) {
        let keys: Vec<&str> = keys.iter().map(|it| it.as_str()).collect();
        fields.insert("parts".to_owned(), json!(keys));
    }
    value
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
            How::Modified(keys) => {
                let parts: Vec<&str> = keys.iter().map(|it| it.as_str()).collect();
                fields.insert("parts".to_owned(), json!(parts));
            }
            How::Renamed { from, name, keys } => {
                let parts: Vec<&str> = keys.iter().map(|it| it.as_str()).collect();
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

fn value_to_value(change: &ValueChange) -> Value {
    let ValueChange { kind, class, name, old, new } = change;
    let [old, new] = [old, new].map(|it| it.as_deref());
    match kind {
        ValueKind::Parameter => json!({"class": class, "parameter": name, "old": old, "new": new}),
        ValueKind::ConfigData => json!({"class": class, "key": name, "old": old, "new": new}),
        ValueKind::Variable => json!({"name": name, "old": old, "new": new}),
    }
}

fn changes_to_fields(entry: &ReportEntry) -> Map<String, Value> {
    let mut groups = with_lists(&["entered", "left", "renamed"]);
    let mut classes = with_lists(&["added", "removed"]);
    let mut lists = with_lists(&["parameters", "variables", "config_data"]);
    let (mut environment, mut conflict, mut error) = (Value::Null, Value::Null, Value::Null);
    let push = |fields: &mut Map<String, Value>, key: &str, value: Value| {
        if let Some(Value::Array(list)) = fields.get_mut(key) {
            list.push(value);
        }
    };
    for it in &entry.changes {
        match &it.what {
            Difference::Entered(group) => push(&mut groups, "entered", name_to_value(group)),
            Difference::Left(group) => push(&mut groups, "left", name_to_value(group)),
            Difference::Renamed { from, to } => {
                let value = json!({"from": name_to_value(from), "to": name_to_value(to)});
                push(&mut groups, "renamed", value);
            }
            Difference::Conflict(it) => conflict = json!({"old": it.old, "new": it.new}),
            Difference::Error(it) => error = json!({"old": it.old, "new": it.new}),
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
    let first = [
        ("count", Value::from(0)),
        ("nodes", Value::Array(Vec::new())),
        ("groups", groups.into()),
        ("environment", environment),
        ("classes", classes.into()),
    ];
    let owned = |(name, value): (&str, Value)| (name.to_owned(), value);
    let mut all: Map<String, Value> = first.into_iter().map(owned).collect();
    all.extend(lists);
    all.extend([("conflict", conflict), ("error", error)].map(owned));
    all
}

/// Returns an object of empty lists.
fn with_lists(names: &[&str]) -> Map<String, Value> {
    names.iter().map(|it| ((*it).to_owned(), Value::Array(Vec::new()))).collect()
}
