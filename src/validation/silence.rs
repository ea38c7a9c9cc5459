//! Warnings that a comment silences.

use std::sync::Arc;

use super::file_list::FileList;
use super::reading::FileReading;
use crate::diagnostic::{Diagnostic, Kind, Place, Severity};

/// The comments of all files that silence warnings; few files have any.
pub(super) struct Silence<'r> {
    /// The files that have, in order.
    files: Vec<&'r FileReading>,
}

impl<'r> Silence<'r> {
    pub(super) fn of(readings: &'r FileList) -> Self {
        let files = readings.remarked().iter().map(Arc::as_ref);
        Self { files: files.filter(|it| !it.ignores.is_empty()).collect() }
    }

    /// Returns whether a comment on the line above silences a warning.
    pub(super) fn hides(&self, found: &Diagnostic) -> bool {
        found.severity == Severity::Warning && self.names(&found.place, found.kind)
    }

    /// Returns whether a comment names a kind of finding.
    pub(super) fn has(&self, kind: Kind) -> bool {
        let mut kinds = self.files.iter().flat_map(|it| &it.ignores).flat_map(|it| &it.kinds);
        kinds.any(|it| it == kind.as_str())
    }

    /// Returns whether a comment on the line above names a kind of finding.
    pub(super) fn names(&self, place: &Place, kind: Kind) -> bool {
        let start = self.files.partition_point(|it| *it.path < *place.file);
        let of_file = self.files.iter().skip(start).take_while(|it| it.path == place.file);
        let ignores = of_file.flat_map(|it| &it.ignores);
        let mut above = ignores.filter(|it| it.line == place.span.start.line);
        above.any(|it| it.kinds.iter().any(|it| it == kind.as_str()))
    }
}
