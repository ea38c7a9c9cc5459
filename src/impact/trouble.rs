//! Why a node has no classification.

use std::collections::HashSet;

use super::conflict_values::{ConflictingValue, conflicting_values};
use super::nodes::ProblemChange;
use super::version::Result;
use crate::classification::{Outcome, conflict_summary};

/// Why a node has no classification, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It has one.
    None,
    /// Leaves differ.
    Conflict {
        /// Which groups, and in what.
        message: String,
        /// The values, by key: equal for equal conflicts.
        values: Vec<ConflictingValue>,
    },
    /// A rule could not be evaluated.
    Error(String),
}

impl Trouble {
    pub(super) fn of(result: &Result<'_>) -> Self {
        match result {
            Err(error) => Self::Error(format!("{error}: {}", error.cause)),
            Ok(explanation) => match &explanation.outcome {
                Outcome::Classified(_) => Self::None,
                Outcome::Conflict(conflicts) => {
                    let hierarchy = &explanation.estate.hierarchy;
                    let message = conflict_summary(hierarchy, conflicts);
                    Self::Conflict { message, values: conflicting_values(hierarchy, conflicts) }
                }
            },
        }
    }

    pub(super) fn error(&self) -> Option<&str> {
        match self {
            Self::Error(message) => Some(message),
            Self::None | Self::Conflict { .. } => None,
        }
    }

    /// Returns what tells one conflict from another.
    pub(super) fn conflict(&self) -> Option<&[ConflictingValue]> {
        match self {
            Self::Conflict { values, .. } => Some(values),
            Self::None | Self::Error(_) => None,
        }
    }

    /// Says what changes. Between two conflicts that is the values, which a message does not name.
    pub(super) fn conflict_change(old: &Self, new: &Self) -> ProblemChange {
        let plain = |it: &Self| match it {
            Self::Conflict { message, .. } => Some(message.clone()),
            Self::None | Self::Error(_) => None,
        };
        match (old, new) {
            (Self::Conflict { values: before, .. }, Self::Conflict { values: after, .. }) => {
                let with = |text: Option<String>,
                            own: &[ConflictingValue],
                            other: &[ConflictingValue]| {
                    let other: HashSet<_> = other.iter().map(ConflictingValue::identity).collect();
                    let new: Vec<String> = own
                        .iter()
                        .filter(|it| !other.contains(&it.identity()))
                        .map(ToString::to_string)
                        .collect();
                    let text = text?;
                    Some(if new.is_empty() { text } else { format!("{text} {}.", new.join("; ")) })
                };
                ProblemChange {
                    old: with(plain(old), before, after),
                    new: with(plain(new), after, before),
                }
            }
            (old, new) => ProblemChange { old: plain(old), new: plain(new) },
        }
    }
}
