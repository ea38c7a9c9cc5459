//! What one node gets differently.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::shared_value::SharedValue;
use crate::model::GroupId;

/// A group by id and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GroupName {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: GroupId,
}

/// What one node gets differently.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeChange {
    /// The changes, in the order in which people are shown them.
    pub changes: Vec<Change>,
}

/// One thing that differs, with what causes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What differs.
    pub what: Difference,
    /// Which changes cause it.
    pub causes: Causes,
}

/// A change, by its number among those of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeRef {
    /// Of a group.
    Group(usize),
    /// Of the values that are set for one node alone.
    NodeFile(usize),
    /// Of `interpolate` in `clade.yaml`.
    Interpolation,
}

/// Whether a node has a classification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has one.
    Classified,
    /// Its groups conflict.
    Conflict,
    /// A rule could not be evaluated.
    Error,
}

/// What the two states give one node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeComparison {
    /// Whether it has a classification in either state.
    pub standing: [Standing; 2],
    /// What it gets differently; none if that is nothing.
    pub change: Option<NodeChange>,
}

/// Nodes with the same change.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportEntry {
    /// Their names, in order.
    pub nodes: Vec<String>,
    /// What they get differently, in the order in which people are shown it; other nodes share parts of it.
    pub changes: Vec<Arc<Change>>,
}

/// What differs.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// The node is in a group that it was not in.
    Entered(GroupName),
    /// The node is not in a group any more.
    Left(GroupName),
    /// The group has another name, or another id with it.
    Renamed {
        /// What it was.
        from: GroupName,
        /// What it is.
        to: GroupName,
    },
    /// A conflict appears, disappears, or is another one or one of other values.
    Conflict(ProblemChange),
    /// A rule that could not be evaluated now can, or the other way round.
    Error(ProblemChange),
    /// Another environment.
    Environment {
        /// What it was.
        old: String,
        /// What it is.
        new: String,
    },
    /// A class that the node did not have.
    ClassAdded(String),
    /// A class that the node does not have any more.
    ClassRemoved(String),
    /// A value.
    Value(ValueChange),
}

/// Why a node has no classification, in either state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ProblemChange {
    /// What was wrong.
    pub old: Option<String>,
    /// What is wrong.
    pub new: Option<String>,
}

/// A parameter, variable or item of config data.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueChange {
    /// What it is.
    pub kind: ValueKind,
    /// The class, except for variables.
    pub class: Option<String>,
    /// The name of parameter, variable or key.
    pub name: String,
    /// What it was; none if it was not set.
    pub old: Option<SharedValue>,
    /// What it is; none if it is not set.
    pub new: Option<SharedValue>,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueKind {
    /// A parameter of a class.
    Parameter,
    /// A top-scope variable.
    Variable,
    /// An item of config data.
    ConfigData,
}

impl ValueKind {
    /// Returns the word of the machine format.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Parameter => "parameter",
            Self::Variable => "variable",
            Self::ConfigData => "config_data",
        }
    }
}

/// The changes that cause a difference. Differences with the same causes share them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Causes {
    /// Each of them, taken back alone, takes the difference back.
    Each(Arc<[ChangeRef]>),
    /// No single edit does; taken back together they do, and fewer of them do not.
    Together(Arc<[ChangeRef]>),
    /// Finding out takes more than the budget for one node.
    Undecided,
}

impl Causes {
    /// Returns the word of the machine format.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Each(_) => "each",
            Self::Together(_) => "together",
            Self::Undecided => "undecided",
        }
    }

    /// Returns the changes.
    pub fn changes(&self) -> &[ChangeRef] {
        match self {
            Self::Each(changes) | Self::Together(changes) => changes,
            Self::Undecided => &[],
        }
    }
}
