//! Warnings that a comment silences.

use std::sync::Arc;

use super::places::files_of;
use super::reading::FileReading;
use crate::diagnostic::{Diagnostic, Kind, Place, Severity};

/// The comments of all files that silence warnings; few files have any.
pub(super) struct Silence {
    /// The files that have, in order.
    files: Vec<Arc<FileReading>>,
}

impl Silence {
    pub(super) fn of(readings: &[Arc<FileReading>]) -> Self {
        Self { files: readings.iter().filter(|it| !it.ignores.is_empty()).cloned().collect() }
    }

    /// Returns whether a comment on the line above silences a warning.
    pub(super) fn hides(&self, found: &Diagnostic) -> bool {
        found.severity == Severity::Warning && silences(&self.files, &found.place, found.kind)
    }
}

/// Returns whether a comment on the line above names a kind of finding.
pub(super) fn silences(readings: &[Arc<FileReading>], place: &Place, kind: Kind) -> bool {
    files_of(readings, &place.file).any(|reading| {
        let mut ignores = reading.ignores.iter().filter(|it| it.line == place.span.start.line);
        ignores.any(|it| it.kinds.iter().any(|it| it == kind.as_str()))
    })
}
