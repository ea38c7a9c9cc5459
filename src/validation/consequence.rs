//! Findings that only follow from an error of a file by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::fault_spans::FaultSpans;
use super::file_list::FileList;
use crate::diagnostic::{Diagnostic, Kind, Severity};

/// The places of the errors of all files by themselves.
pub(super) struct FileErrors<'r> {
    of_files: BTreeMap<&'r str, FaultSpans>,
}

impl<'r> FileErrors<'r> {
    pub(super) fn of(readings: &'r FileList) -> Self {
        let spans = |found: &'r [Arc<Diagnostic>]| -> FaultSpans {
            // Of a key that is set twice, what is read was meant.
            let explains =
                |it: &Diagnostic| it.severity == Severity::Error && it.kind != Kind::DuplicateKey;
            let errors = found.iter().filter(|it| explains(it));
            errors.map(|it| it.place.span).collect()
        };
        let of_files = readings.remarked().iter().map(|it| (&*it.path, spans(&it.diagnostics)));
        Self { of_files: of_files.filter(|(_, it)| !it.is_empty()).collect() }
    }

    /// Returns whether a finding only follows from an error: it is about the same place, or about a value that was not
    /// read as it is meant.
    pub(super) fn explain(&self, found: &Diagnostic) -> bool {
        let Some(errors) = self.of_files.get(&*found.place.file) else { return false };
        let is_of_value = matches!(found.kind, Kind::ParameterType | Kind::RedundantValue);
        let span = found.place.span;
        errors.cover(span) || is_of_value && errors.touch(span)
    }
}
