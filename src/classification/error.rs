//! Why a node cannot be classified.

use super::interpolation::ExpansionFault;
use crate::model::{Group, GroupId};
use crate::rule::EvaluationError;

/// Whether a group matches could not be found out, or facts could not be put into a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.what())]
pub struct ClassificationError {
    /// The id of the group; that of the root group for a value that is set for the node alone.
    pub group: GroupId,
    /// Its name.
    pub name: String,
    /// What went wrong.
    #[source]
    pub cause: ClassificationFault,
}

/// What went wrong in a classification.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassificationFault {
    /// The rule of the group could not be evaluated.
    #[error(transparent)]
    Rule(#[from] EvaluationError),
    /// Facts could not be put into a value.
    #[error("{fault}")]
    Value {
        /// The value, such as `classes.apache.port`.
        key: String,
        /// What went wrong.
        fault: ExpansionFault,
    },
}

impl ClassificationError {
    /// Says of which group it is that a pattern could not be searched.
    pub fn of(group: &Group, cause: EvaluationError) -> Self {
        Self { group: group.id, name: group.name.to_string(), cause: cause.into() }
    }

    /// Says into which value of a group facts could not be put.
    pub(super) fn of_value(group: &Group, key: String, fault: ExpansionFault) -> Self {
        let cause = ClassificationFault::Value { key, fault };
        Self { group: group.id, name: group.name.to_string(), cause }
    }

    /// Says what could not be done.
    fn what(&self) -> String {
        match &self.cause {
            ClassificationFault::Rule(_) => {
                format!("the rule of the group `{}` could not be evaluated", self.name)
            }
            ClassificationFault::Value { key, .. } => {
                format!("facts could not be put into `{key}`")
            }
        }
    }
}
