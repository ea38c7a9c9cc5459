//! Findings of all sources in one list.

use std::cmp::Ordering;
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
    diagnostics.sort_by(order);
}

fn order(a: &Diagnostic, b: &Diagnostic) -> Ordering {
    let is_of_commit = |it: &Diagnostic| &*it.place.file == ".";
    (is_of_commit(a), &a.place, a.severity, a.kind, &a.message).cmp(&(
        is_of_commit(b),
        &b.place,
        b.severity,
        b.kind,
        &b.message,
    ))
}

/// Puts together what was found, in order and without what comments silence.
pub(super) fn gather(
    readings: &[Arc<FileReading>],
    findings: &[Finding],
    others: &[Diagnostic],
) -> Vec<Diagnostic> {
    let of_files = readings.iter().flat_map(|it| &it.diagnostics);
    let of_groups = findings.iter().map(|it| it.diagnostic.as_ref());
    let all = of_files.chain(of_groups).chain(others);
    // A finding is large: only what is shown is copied, and into its place.
    let mut shown: Vec<&Diagnostic> = all.filter(|it| !is_silenced(it, readings)).collect();
    shown.sort_by(|a, b| order(a, b));
    shown.into_iter().cloned().collect()
}
