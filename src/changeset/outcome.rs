//! What a write comes to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{EnvironmentName, GroupId};

/// What a write comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Changeset {
    /// The files that change, with their new text; none for one that goes. Empty if everything is
    /// as wanted already.
    pub files: BTreeMap<String, Option<String>>,
    /// One line on what changes.
    pub subject: String,
    /// What the client is told.
    pub answer: WriteOutcome,
}

/// What a client is told when its change is in effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteOutcome {
    /// A group was made.
    Created(GroupId),
    /// A group is as it was put.
    Put(GroupId),
    /// A group was changed.
    Edited(GroupId),
    /// There is nothing to say.
    Done,
    /// From which groups nodes were unpinned.
    Unpinned(Value),
    /// An environment exists.
    Environment(EnvironmentName),
    /// Class catalogues are as the Puppet Server says.
    Updated,
}

impl WriteOutcome {
    /// Returns the group that the client is told of.
    pub fn group(&self) -> Option<GroupId> {
        match self {
            Self::Created(id) | Self::Put(id) | Self::Edited(id) => Some(*id),
            Self::Done | Self::Unpinned(_) | Self::Environment(_) | Self::Updated => None,
        }
    }
}
