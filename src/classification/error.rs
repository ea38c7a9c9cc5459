//! Why a node cannot be classified.

use crate::model::{Group, GroupId};
use crate::rule::EvaluationError;

/// Whether a group matches could not be found out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the rule of the group `{name}` could not be evaluated")]
pub struct ClassificationError {
    /// The id of the group.
    pub group: GroupId,
    /// Its name.
    pub name: String,
    /// What went wrong.
    #[source]
    pub cause: EvaluationError,
}

impl ClassificationError {
    /// Says of which group it is that a pattern could not be searched.
    pub fn of(group: &Group, cause: EvaluationError) -> Self {
        Self { group: group.id, name: group.name.to_string(), cause }
    }
}
