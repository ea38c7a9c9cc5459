//! Reading the machine format: what another program has found out about the same two states.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::groups::GroupChange;
use super::node_files::NodeFileChange;
use super::nodes::{
    Causes, Change, ChangeRef, Difference, GroupName, ProblemChange, ReportEntry, ValueChange,
    ValueKind,
};
use super::report::{INTERPOLATION, Impact};
use super::shared_value::SharedValue;
use super::survey::NodeCounts;
use crate::model::GroupId;

/// An impact cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ImpactError {
    /// It is not written in this format.
    #[error("the answer has another form: {0}")]
    Format(#[from] serde_json::Error),
    /// It is about other changes.
    #[error("the answer is about other groups")]
    OtherChanges,
}

#[derive(Deserialize)]
struct WrittenSummary {
    nodes: usize,
}

/// A change that causes something: of a group, or of the values of a node.
#[derive(Deserialize)]
struct WrittenCause {
    change: String,
    id: Option<GroupId>,
    node: Option<String>,
    setting: Option<String>,
}

#[derive(Deserialize)]
struct WrittenEntry {
    nodes: Vec<String>,
    groups: WrittenGroups,
    error: Option<ProblemChange>,
    conflict: Option<ProblemChange>,
    environment: Option<WrittenEnvironment>,
    classes: WrittenClasses,
    parameters: Vec<WrittenChange>,
    config_data: Vec<WrittenChange>,
    variables: Vec<WrittenChange>,
    because: Vec<WrittenReason>,
}

#[derive(Deserialize)]
struct WrittenGroups {
    renamed: Vec<WrittenRename>,
    entered: Vec<GroupName>,
    left: Vec<GroupName>,
}

#[derive(Deserialize)]
struct WrittenRename {
    from: GroupName,
    to: GroupName,
}

#[derive(Deserialize)]
struct WrittenEnvironment {
    old: String,
    new: String,
}

#[derive(Deserialize)]
struct WrittenClasses {
    added: Vec<String>,
    removed: Vec<String>,
}

#[derive(Deserialize)]
struct WrittenChange {
    class: Option<String>,
    #[serde(alias = "parameter", alias = "key")]
    name: String,
    old: Option<SharedValue>,
    new: Option<SharedValue>,
}

#[derive(Deserialize)]
struct WrittenReason {
    what: String,
    decision: String,
    causes: Vec<WrittenCause>,
}

impl WrittenEntry {
    /// Returns the differences in the order in which people are shown them, and their reasons.
    fn into_parts(self) -> (Vec<String>, Vec<Difference>, Vec<WrittenReason>) {
        let value = |kind| {
            move |WrittenChange { class, name, old, new }| {
                Difference::Value(ValueChange { kind, class, name, old, new })
            }
        };
        let renamed = |WrittenRename { from, to }| Difference::Renamed { from, to };
        let environment = |WrittenEnvironment { old, new }| Difference::Environment { old, new };
        let Self { groups, classes, .. } = self;
        let differences = (groups.renamed.into_iter().map(renamed))
            .chain(groups.entered.into_iter().map(Difference::Entered))
            .chain(groups.left.into_iter().map(Difference::Left))
            .chain(self.error.map(Difference::Error))
            .chain(self.conflict.map(Difference::Conflict))
            .chain(self.environment.map(environment))
            .chain(classes.added.into_iter().map(Difference::ClassAdded))
            .chain(classes.removed.into_iter().map(Difference::ClassRemoved))
            .chain(self.parameters.into_iter().map(value(ValueKind::Parameter)))
            .chain(self.config_data.into_iter().map(value(ValueKind::ConfigData)))
            .chain(self.variables.into_iter().map(value(ValueKind::Variable)));
        (self.nodes, differences.collect(), self.because)
    }
}

/// The changes by what they are about.
struct KnownChanges<'c> {
    groups: HashMap<GroupId, usize>,
    node_files: HashMap<&'c str, usize>,
}

impl KnownChanges<'_> {
    fn find(&self, cause: &WrittenCause) -> Option<ChangeRef> {
        match (cause.id, &cause.node) {
            (Some(id), _) => self.groups.get(&id).copied().map(ChangeRef::Group),
            (None, Some(node)) => {
                self.node_files.get(node.as_str()).copied().map(ChangeRef::NodeFile)
            }
            (None, None) => {
                let is_setting = cause.setting.as_deref() == Some(INTERPOLATION);
                is_setting.then_some(ChangeRef::Interpolation)
            }
        }
    }

    fn causes(&self, reason: &WrittenReason) -> Option<Causes> {
        let changes = reason.causes.iter().map(|it| self.find(it)).collect::<Option<_>>()?;
        [Causes::Each(Arc::default()), Causes::Together(Arc::default()), Causes::Undecided]
            .into_iter()
            .find(|it| it.as_str() == reason.decision)
            .map(|decision| match decision {
                Causes::Each(_) => Causes::Each(changes),
                Causes::Together(_) => Causes::Together(changes),
                Causes::Undecided => Causes::Undecided,
            })
    }

    fn entry(&self, written: WrittenEntry) -> Option<ReportEntry> {
        let (nodes, differences, reasons) = written.into_parts();
        if differences.len() != reasons.len() {
            return None;
        }
        let change = |(what, reason): (Difference, WrittenReason)| {
            let causes = self.causes(&reason).filter(|_| reason.what == what.subject())?;
            Some(Arc::new(Change { what, causes }))
        };
        let changes = differences.into_iter().zip(reasons).map(change).collect::<Option<_>>()?;
        Some(ReportEntry { nodes, changes })
    }
}

impl Impact {
    /// Reads what an [`Impact`]'s `Serialize` has written about the same changes elsewhere.
    ///
    /// # Errors
    ///
    /// Returns an error if it is written otherwise, or about other changes.
    pub fn read(
        groups: Vec<GroupChange>,
        node_files: Vec<NodeFileChange>,
        written: &Map<String, Value>,
    ) -> Result<Self, ImpactError> {
        let field = |name: &str| written.get(name).unwrap_or(&Value::Null);
        let summary = field("summary");
        let WrittenSummary { nodes } = WrittenSummary::deserialize(summary)?;
        let counts = NodeCounts::deserialize(summary)?;
        let changes = |name| Vec::<WrittenCause>::deserialize(field(name));
        let (other_groups, other_files) = (changes("groups")?, changes("node_files")?);
        let same_groups = groups.iter().map(|it| (Some(it.id), it.how.as_str()));
        let same_files = node_files.iter().map(|it| (Some(it.node.as_str()), it.how.as_str()));
        if !same_groups.eq(other_groups.iter().map(|it| (it.id, it.change.as_str())))
            || !same_files.eq(other_files.iter().map(|it| (it.node.as_deref(), it.change.as_str())))
        {
            return Err(ImpactError::OtherChanges);
        }
        let known = KnownChanges {
            groups: groups.iter().enumerate().map(|(at, it)| (it.id, at)).collect(),
            node_files: node_files
                .iter()
                .enumerate()
                .map(|(at, it)| (it.node.as_str(), at))
                .collect(),
        };
        // From its text: serde reads a number of a value as one of the machine, so that `-0` would be 0.
        let entries: Vec<WrittenEntry> = serde_json::from_str(&field("changes").to_string())?;
        let entries: Option<Vec<ReportEntry>> =
            entries.into_iter().map(|it| known.entry(it)).collect();
        let entries = entries.ok_or(ImpactError::OtherChanges)?;
        Ok(Self { groups, node_files, nodes, counts, entries })
    }
}
