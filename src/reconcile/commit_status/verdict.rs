//! Whether a commit is valid, as a commit status says it.

use std::fmt::Display;

use crate::forge::StatusState;
use crate::reconcile::outcome::{Outcome, summary};

/// The context of statuses that say whether a commit is valid.
pub(in crate::reconcile) const VALIDATE: &str = "clade/validate";

/// The state of a status, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::reconcile) struct Verdict {
    pub(in crate::reconcile) state: StatusState,
    pub(in crate::reconcile) description: String,
}

impl Verdict {
    pub(in crate::reconcile) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Valid(snapshot) => Self::valid(snapshot.estate.hierarchy.len()),
            Outcome::Rejected(rejected) => Self::invalid(summary(&rejected.diagnostics)),
        }
    }

    pub(in crate::reconcile) fn valid(groups: usize) -> Self {
        Self { state: StatusState::Success, description: format!("valid, {groups} groups") }
    }

    pub(in crate::reconcile) fn invalid(description: String) -> Self {
        Self { state: StatusState::Failure, description }
    }

    /// Returns that a commit could not be checked, and why.
    pub(in crate::reconcile) fn unchecked(why: &dyn Display) -> Self {
        Self::error(format!("could not be checked: {why}"))
    }

    pub(in crate::reconcile) fn error(description: String) -> Self {
        Self { state: StatusState::Error, description }
    }
}
