//! The result of a write.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{EnvironmentName, GroupId};

/// The result of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Changeset {
    /// The files that change, with their new text; none for one that goes. Empty if everything is
    /// as wanted already.
    pub files: BTreeMap<String, Option<String>>,
    /// One line on what changes.
    pub subject: String,
    /// What the response says.
    pub answer: WriteOutcome,
    /// The holder of the grant that allows it; none without authentication.
    pub actor: Option<String>,
}

impl Changeset {
    /// Returns the result of a write that changes nothing.
    pub fn unchanged(answer: WriteOutcome) -> Self {
        Self { files: BTreeMap::new(), subject: String::new(), answer, actor: None }
    }
}

/// What the response says once the change is in effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteOutcome {
    /// A group was made.
    Created(GroupId),
    /// A group is as it was put.
    Put(GroupId),
    /// A group was changed.
    Edited(GroupId),
    /// The response has no body.
    Done,
    /// From which groups nodes were unpinned.
    Unpinned(Value),
    /// An environment exists.
    Environment(EnvironmentName),
    /// Class catalogues are as the Puppet Server says.
    Updated,
}

impl WriteOutcome {
    /// Returns the group that the response is about.
    pub fn group(&self) -> Option<GroupId> {
        match self {
            Self::Created(id) | Self::Put(id) | Self::Edited(id) => Some(*id),
            Self::Done | Self::Unpinned(_) | Self::Environment(_) | Self::Updated => None,
        }
    }
}
