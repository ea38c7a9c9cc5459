//! A report: the findings on one commit or working tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Diagnostic, Severity};

/// The findings on one commit or working tree.
#[derive(Clone, Debug)]
pub struct Report {
    /// The full id of the commit; none for a working tree.
    pub commit: Option<String>,
    /// How many groups there are.
    pub groups: usize,
    /// What was found, by place.
    pub diagnostics: Vec<Arc<Diagnostic>>,
    /// Every file that was read.
    pub files: Vec<Arc<str>>,
    /// What stands before the path of a file for tools that look from the repository's root: empty,
    /// or a directory with a `/` at its end.
    pub prefix: String,
    /// The text of the files that have findings.
    pub sources: BTreeMap<Arc<str>, String>,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people, as rustc writes.
    Human,
    /// One JSON object.
    Json,
    /// Workflow commands of GitHub Actions.
    Github,
    /// A code quality report of GitLab.
    Gitlab,
    /// SARIF 2.1.0.
    Sarif,
    /// JUnit XML.
    Junit,
}

/// How many findings people are shown; programs get all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownFindings {
    /// So many of each kind, the first by place.
    FirstOfEachKind(usize),
    /// All of them.
    All,
}

/// Whether text for people has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// ANSI escapes.
    Ansi,
    /// None.
    Plain,
}

impl Report {
    /// Returns how many findings have a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.diagnostics.iter().filter(|it| it.severity == severity).count()
    }

    /// Returns whether there is no error.
    pub fn is_valid(&self) -> bool {
        self.count(Severity::Error) == 0
    }

    /// Returns the findings with errors first, each by place.
    pub(super) fn errors_first(&self) -> Vec<&Diagnostic> {
        let mut all: Vec<&Diagnostic> = self.diagnostics.iter().map(Arc::as_ref).collect();
        all.sort_by_key(|it| it.severity);
        all
    }
}
