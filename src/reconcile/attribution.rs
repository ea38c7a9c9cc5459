//! Who had something done, and why.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::CommitId;

/// Who had something done, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution {
    /// The name of the token or certificate; none where access is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The reason that was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A commit that an operator pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The commit.
    pub commit: CommitId,
    /// Since when.
    pub since: Timestamp,
    /// Who pinned it, and why.
    pub by: Attribution,
}
