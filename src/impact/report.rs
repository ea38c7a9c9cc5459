//! The impact of a change on a set of nodes: nodes with the same change stand together.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;
use serde_json::{Value, json};

use super::changed_key::line_of;
use super::groups::{GroupChange, How};
use super::node_files::NodeFileChange;
use super::nodes::{
    Change, ChangeRef, Difference, GroupName, NodeChange, NodeComparison, Standing, ValueChange,
    ValueKind,
};

/// What came of comparing a set of nodes.
#[derive(Debug, Default)]
pub struct Survey {
    nodes: usize,
    counts: NodeCounts,
    /// The nodes with the same change, by its text: what is written is what is the same, since numbers that
    /// are equal are written alike.
    by_change: HashMap<String, ReportEntry>,
}

impl Extend<(String, NodeComparison)> for Survey {
    fn extend<I: IntoIterator<Item = (String, NodeComparison)>>(&mut self, nodes: I) {
        for (name, NodeComparison { standing, change }) in nodes {
            self.nodes += 1;
            self.counts.add(standing);
            if let Some(change) = change {
                self.add(name, change);
            }
        }
    }
}

impl Survey {
    fn add(&mut self, name: String, change: NodeChange) {
        let key = Value::from(change.changes.iter().map(change_to_value).collect::<Vec<_>>());
        let fresh = || ReportEntry { nodes: Vec::new(), change };
        self.by_change.entry(key.to_string()).or_insert_with(fresh).nodes.push(name);
    }
}

/// How many nodes have no classification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct NodeCounts {
    /// Nodes that get a conflict that they did not have.
    pub conflicts_appearing: usize,
    /// Nodes that had a conflict and are classified now.
    pub conflicts_disappearing: usize,
    /// Nodes in conflict before and after.
    pub conflicts_staying: usize,
    /// Nodes of which a rule could be evaluated before, and cannot now.
    pub errors_appearing: usize,
    /// Nodes of which a rule could not be evaluated before.
    pub errors_disappearing: usize,
    /// Nodes of which a rule cannot be evaluated, before and after.
    pub errors_staying: usize,
    /// Nodes without a classification before.
    pub unclassified_before: usize,
    /// Nodes without one after.
    pub unclassified_after: usize,
}

impl NodeCounts {
    fn add(&mut self, [before, after]: [Standing; 2]) {
        use Standing::{Classified, Conflict, Error};
        let count = |counter: &mut usize, counts: bool| *counter += usize::from(counts);
        count(&mut self.conflicts_appearing, before != Conflict && after == Conflict);
        count(&mut self.conflicts_disappearing, before == Conflict && after == Classified);
        count(&mut self.conflicts_staying, before == Conflict && after == Conflict);
        count(&mut self.errors_appearing, before != Error && after == Error);
        count(&mut self.errors_disappearing, before == Error && after != Error);
        count(&mut self.errors_staying, before == Error && after == Error);
        count(&mut self.unclassified_before, before != Classified);
        count(&mut self.unclassified_after, after != Classified);
    }
}

/// What a change does to a set of nodes.
#[derive(Debug, Default)]
pub struct Impact {
    /// The groups that differ.
    pub groups: Vec<GroupChange>,
    /// The nodes whose own values differ.
    pub node_files: Vec<NodeFileChange>,
    /// How many nodes were compared.
    pub nodes: usize,
    /// How many of them have no classification.
    pub counts: NodeCounts,
    /// The nodes that get something else, those with the same change together; the most nodes
    /// first.
    pub entries: Vec<ReportEntry>,
}

/// Nodes with the same change.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportEntry {
    /// Their names, in order.
    pub nodes: Vec<String>,
    /// What they get differently.
    pub change: NodeChange,
}

/// The setting that [`CausingChange::Interpolation`] is of.
pub(super) const INTERPOLATION: &str = "interpolate";

/// A change that causes something.
#[derive(Clone, Copy, Debug)]
pub enum CausingChange<'i> {
    /// Of a group.
    Group(&'i GroupChange),
    /// Of the values set for one node alone.
    NodeFile(&'i NodeFileChange),
    /// Of `interpolate` in `clade.yaml`.
    Interpolation,
}

impl CausingChange<'_> {
    /// Returns the line of what causes a difference.
    pub fn line(&self, of: &Difference) -> Option<u32> {
        let (keys, line) = match self {
            Self::Group(it) => (&it.keys, it.line),
            Self::NodeFile(it) => (&it.keys, it.line),
            Self::Interpolation => return None,
        };
        line_of(keys, of).or(line)
    }
}

impl Impact {
    /// Gathers the changes of nodes.
    pub fn gather(
        groups: Vec<GroupChange>,
        node_files: Vec<NodeFileChange>,
        survey: Survey,
    ) -> Self {
        let Survey { nodes, counts, by_change } = survey;
        let mut entries: Vec<ReportEntry> = by_change.into_values().collect();
        for entry in &mut entries {
            entry.nodes.sort_unstable();
        }
        entries.sort_by(|a, b| (b.nodes.len(), &a.nodes).cmp(&(a.nodes.len(), &b.nodes)));
        Self { groups, node_files, nodes, counts, entries }
    }

    /// Returns how many nodes get something else.
    pub fn changed(&self) -> usize {
        self.entries.iter().map(|it| it.nodes.len()).sum()
    }

    /// Returns a change that causes something.
    pub fn cause(&self, change: ChangeRef) -> Option<CausingChange<'_>> {
        match change {
            ChangeRef::Group(at) => self.groups.get(at).map(CausingChange::Group),
            ChangeRef::NodeFile(at) => self.node_files.get(at).map(CausingChange::NodeFile),
            ChangeRef::Interpolation => Some(CausingChange::Interpolation),
        }
    }

    /// Writes the parts of the machine format that are about groups and nodes.
    pub fn to_value(&self) -> Value {
        let change = |entry: &ReportEntry| {
            let mut value = node_change_to_value(&entry.change);
            if let Value::Object(fields) = &mut value {
                let because: Vec<Value> =
                    entry.change.changes.iter().map(|it| self.reason_to_value(it)).collect();
                fields.insert("count".to_owned(), entry.nodes.len().into());
                fields.insert("nodes".to_owned(), json!(entry.nodes));
                fields.insert("causes".to_owned(), self.all_causes(&entry.change).into());
                fields.insert("because".to_owned(), because.into());
            }
            value
        };
        let counts = self.counts;
        json!({
            "summary": {
                "nodes": self.nodes,
                "changed": self.changed(),
                "conflicts_appearing": counts.conflicts_appearing,
                "conflicts_disappearing": counts.conflicts_disappearing,
                "conflicts_staying": counts.conflicts_staying,
                "errors_appearing": counts.errors_appearing,
                "errors_disappearing": counts.errors_disappearing,
                "errors_staying": counts.errors_staying,
                "unclassified_before": counts.unclassified_before,
                "unclassified_after": counts.unclassified_after,
            },
            "groups": self.groups.iter().map(group_to_value).collect::<Vec<_>>(),
            "node_files": self.node_files.iter().map(node_file_to_value).collect::<Vec<_>>(),
            "changes": self.entries.iter().map(change).collect::<Vec<_>>(),
        })
    }

    fn all_causes(&self, change: &NodeChange) -> Vec<Value> {
        let causes = change.changes.iter().flat_map(|it| it.causes.changes().iter().copied());
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
            Self::Value(change) => match change.kind {
                ValueKind::Parameter => "parameter",
                ValueKind::Variable => "variable",
                ValueKind::ConfigData => "config_data",
            },
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

/// Writes one change with the numbers of its causes.
fn change_to_value(change: &Change) -> Value {
    let what = match &change.what {
        Difference::Entered(group) => json!({"entered": name_to_value(group)}),
        Difference::Left(group) => json!({"left": name_to_value(group)}),
        Difference::Renamed { from, to } => {
            json!({"from": name_to_value(from), "to": name_to_value(to)})
        }
        Difference::Conflict(it) => json!({"conflict": [it.old, it.new]}),
        Difference::Error(it) => json!({"error": [it.old, it.new]}),
        Difference::Environment { old, new } => json!({"environment": [old, new]}),
        Difference::ClassAdded(class) => json!({"added": class}),
        Difference::ClassRemoved(class) => json!({"removed": class}),
        Difference::Value(it) => value_to_value(it),
    };
    let causes: Vec<[usize; 2]> = change
        .causes
        .changes()
        .iter()
        .map(|it| match it {
            ChangeRef::Group(at) => [0, *at],
            ChangeRef::NodeFile(at) => [1, *at],
            ChangeRef::Interpolation => [2, 0],
        })
        .collect();
    json!([what, change.causes.as_str(), causes])
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
    let (mut environment, mut conflict, mut error) = (Value::Null, Value::Null, Value::Null);
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
    let mut value = json!({
        "count": 0, "nodes": [], "groups": groups, "environment": environment,
        "classes": classes,
    });
    if let (Value::Object(all), Value::Object(lists)) = (&mut value, lists) {
        all.extend(lists);
        all.insert("conflict".to_owned(), conflict);
        all.insert("error".to_owned(), error);
    }
    value
}
