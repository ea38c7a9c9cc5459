//! Findings of all sources in one list.

use std::sync::Arc;

use super::checks::Finding;
use super::reading::FileReading;
use super::silence::is_silenced;
use crate::diagnostic::{Diagnostic, Severity};

pub(super) fn are_warnings(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().all(|it| it.severity != Severity::Error)
}

/// Sorts by place; what is said of the commit as a whole comes last.
pub(super) fn sort(diagnostics: &mut [Diagnostic]) {
    let is_of_commit = |it: &Diagnostic| &*it.place.file == ".";
    diagnostics.sort_by(|a, b| {
        (is_of_commit(a), &a.place, a.severity, a.kind, &a.message).cmp(&(
            is_of_commit(b),
            &b.place,
            b.severity,
            b.kind,
            &b.message,
        ))
    });
}

/// Puts together what was found, in order and without what comments silence.
pub(super) fn gather(
    readings: &[Arc<FileReading>],
    findings: &[Finding],
    others: Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    let of_files = readings.iter().flat_map(|it| it.diagnostics.iter().cloned());
    let of_groups = findings.iter().map(|it| it.diagnostic.clone());
    let mut all: Vec<Diagnostic> = of_files.chain(of_groups).chain(others).collect();
    all.retain(|it| !is_silenced(it, readings));
    sort(&mut all);
    all
}
