//! What lists show of an answer, read without the rest of it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::record::NodeState;
use super::values::DefiningGroup;
use super::written::UnreadableAnswer;
use crate::model::{EnvironmentName, GroupId};

/// What lists show of an answer: its values stay on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerOutline {
    /// What came of the classification.
    pub state: NodeState,
    /// The environment; none unless the node is classified.
    pub environment: Option<EnvironmentName>,
    /// The groups that match, by id.
    pub groups: Vec<DefiningGroup>,
}

/// An answer as [`AnswerRecord::to_bytes`](super::AnswerRecord::to_bytes) writes it.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Outlined {
    Classified(OutlinedValues),
    Conflict(OutlinedConflict),
    Error(IgnoredAny),
}

#[derive(Deserialize)]
struct OutlinedValues {
    groups: Vec<GroupId>,
    #[serde(default)]
    environment: Option<OutlinedEnvironment>,
    names: BTreeMap<GroupId, String>,
}

#[derive(Deserialize)]
struct OutlinedEnvironment {
    value: String,
}

#[derive(Deserialize)]
struct OutlinedConflict {
    groups: Vec<DefiningGroup>,
}

impl AnswerOutline {
    /// Reads the outline of what [`AnswerRecord::to_bytes`](super::AnswerRecord::to_bytes) has written.
    ///
    /// # Errors
    ///
    /// Returns an error if it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, UnreadableAnswer> {
        let (state, environment, groups) = match serde_json::from_slice(bytes)? {
            Outlined::Classified(OutlinedValues { groups, environment, mut names }) => {
                let named = |id| match names.remove(&id) {
                    Some(name) => Ok(DefiningGroup { id, name }),
                    None => Err(UnreadableAnswer::Nameless(id)),
                };
                let groups = groups.into_iter().map(named).collect::<Result<_, _>>()?;
                let environment = environment.and_then(|it| it.value.parse().ok());
                (NodeState::Classified, environment, groups)
            }
            Outlined::Conflict(OutlinedConflict { groups }) => (NodeState::Conflict, None, groups),
            Outlined::Error(_) => (NodeState::Error, None, Vec::new()),
        };
        Ok(Self { state, environment, groups })
    }
}
