//! What a change of groups does to nodes.
//!
//! Two states of a repository are compared over a set of nodes. [`GroupChange`](groups::GroupChange)s are what people
//! wrote; a [`NodeChange`](nodes::NodeChange) is what one node gets differently, and why.
//!
//! A *cause* is a change that, taken back alone, takes the difference back; where no single one
//! does, the causes are a set that does together, and no part of it. Causes are found by taking
//! changes back: the node is classified in mixtures of the two states.

mod causes;
mod change_digest;
mod changed_key;
mod compare;
mod comparison;
mod conflict_values;
mod differences;
mod digest;
mod equalities;
mod family;
mod gone_groups;
mod groups;
mod keys;
mod mentioning_settings;
mod mixture;
mod node_files;
mod nodes;
mod read;
mod report;
mod shared_value;
mod survey;
mod trouble;
mod version;
mod written;

use std::collections::BTreeMap;

use crate::diagnostic::Place;
use crate::hierarchy::Estate;
use crate::model::GroupId;

pub use comparison::StateComparison;
pub use groups::How;
pub use keys::StateFiles;
pub use nodes::{
    Causes, Change, ChangeRef, Difference, GroupName, NodeComparison, ReportEntry, ValueChange,
    ValueKind,
};
pub use report::{CausingChange, Impact};
pub use survey::Survey;
#[cfg(feature = "daemon")]
pub use survey::SurveyTooLarge;
pub use written::REASONS;

/// One of the two states that are compared.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// What it says.
    pub estate: &'a Estate,
    /// Where each group is written.
    pub origins: &'a BTreeMap<GroupId, Place>,
    /// Where the values set for each node alone are written, as far as that is known.
    pub node_origins: &'a BTreeMap<String, Place>,
}

#[cfg(test)]
mod tests;
