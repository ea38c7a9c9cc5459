//! Checking a commit that was not reviewed, in a process of its own.
//!
//! The author of a pull request chooses every byte of its head. Budgets bound what a commit costs, but
//! a gap in them, in libgit2 or in the parser must not end the daemon. So a hidden command of the same
//! program checks the commit under limits of the kernel on memory and time, and a process that dies is
//! a verdict as well.

mod checker;

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::outcome::summary;
use super::read::check_commit;
use crate::diagnostic::{Severity, visible_up_to};
use crate::git::Repository;
use crate::model::{Budget, BudgetOverride, CommitId};
use crate::validation::Checked;

pub use checker::HeadChecker;
pub(super) use checker::{CheckFailure, Head};

/// The longest text of a verdict, in characters. Forges take less.
const LONGEST: usize = 1_000;

/// What the process that checks a commit reads from its standard input. Its working directory is the
/// repository.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadCheck {
    /// The commit.
    pub commit: CommitId,
    /// The directory of the groups in the repository.
    pub directory: String,
    /// What the commit may cost.
    pub budget: Vec<BudgetOverride>,
    /// How many bytes of memory the process may allocate.
    pub memory: u64,
    /// How many seconds of processor time it may take.
    pub cpu_seconds: u64,
}

/// What it writes to its standard output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case", deny_unknown_fields)]
pub enum HeadVerdict {
    /// The commit is valid.
    Valid {
        /// How many groups it has, the root group counted.
        groups: usize,
    },
    /// It is not, or it exceeds its budget.
    Invalid {
        /// How many errors were found.
        errors: usize,
        /// The first of them, with its place, and how many more there are.
        summary: String,
    },
    /// It could not be read.
    Unreadable {
        /// Why.
        reason: String,
    },
}

/// Checks a commit of a mirror.
pub fn check_head(mirror: &Path, check: &HeadCheck) -> HeadVerdict {
    let unreadable = |error: &dyn std::error::Error| {
        let reason = match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        HeadVerdict::Unreadable { reason: visible_up_to(&reason, LONGEST) }
    };
    let repository = match Repository::open_mirror(mirror) {
        Ok(repository) => repository,
        Err(error) => return unreadable(&error),
    };
    let budget = Budget::DEFAULT.with(&check.budget);
    match check_commit(&repository, check.commit, &check.directory, budget) {
        Ok(checked) => verdict(&checked),
        Err(error) => unreadable(&error),
    }
}

fn verdict(checked: &Checked) -> HeadVerdict {
    match &checked.estate {
        Some(estate) => HeadVerdict::Valid { groups: estate.hierarchy.len() },
        None => {
            let all = &checked.diagnostics;
            let errors = all.iter().filter(|it| it.severity == Severity::Error).count();
            HeadVerdict::Invalid { errors, summary: visible_up_to(&summary(all), LONGEST) }
        }
    }
}
