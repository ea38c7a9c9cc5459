//! Warnings that a comment silences.

use std::sync::Arc;

use super::places::files_of;
use super::reading::FileReading;
use crate::diagnostic::{Diagnostic, Kind, Place, Severity};

/// The comments of all files that silence warnings; few files have any.
pub(super) struct Silence<'r> {
    /// The files that have, in order.
    files: Vec<&'r FileReading>,
}

impl<'r> Silence<'r> {
    pub(super) fn of(readings: &'r [Arc<FileReading>]) -> Self {
        let files = readings.iter().filter(|it| !it.ignores.is_empty());
        Self { files: files.map(AsRef::as_ref).collect() }
    }

    /// Returns whether a comment on the line above silences a warning.
    pub(super) fn hides(&self, found: &Diagnostic) -> bool {
        if found.severity != Severity::Warning || self.files.is_empty() {
            return false;
        }
        let path = &found.place.file;
        let start = self.files.partition_point(|it| it.path < *path);
        let mut files = self.files.iter().skip(start).take_while(|it| it.path == *path);
        files.any(|file| is_ignored(file, &found.place, found.kind))
    }
}

/// Returns whether a comment on the line above names a kind of finding.
pub(super) fn silences(readings: &[Arc<FileReading>], place: &Place, kind: Kind) -> bool {
    files_of(readings, &place.file).any(|file| is_ignored(file, place, kind))
}

fn is_ignored(file: &FileReading, place: &Place, kind: Kind) -> bool {
    let mut ignores = file.ignores.iter().filter(|it| it.line == place.span.start.line);
    ignores.any(|it| it.kinds.iter().any(|it| it == kind.as_str()))
}
