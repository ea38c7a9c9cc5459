//! Warnings that a comment silences.

use std::sync::Arc;

use super::places::find;
use super::reading::FileReading;
use crate::diagnostic::{Diagnostic, Kind, Place, Severity};

/// Returns whether a comment on the line above silences a warning.
pub(super) fn is_silenced(found: &Diagnostic, readings: &[Arc<FileReading>]) -> bool {
    found.severity == Severity::Warning && silences(readings, &found.place, found.kind)
}

/// Returns whether a comment on the line above names a kind of finding.
pub(super) fn silences(readings: &[Arc<FileReading>], place: &Place, kind: Kind) -> bool {
    find(readings, &place.file).is_some_and(|reading| {
        let mut ignores = reading.ignores.iter().filter(|it| it.line == place.span.start.line);
        ignores.any(|it| it.kinds.iter().any(|it| it == kind.as_str()))
    })
}
