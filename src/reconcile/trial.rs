//! Whether a write would be accepted, without writing anything.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use super::build::{Built, File, is_settings, source_file};
use super::controller::Controller;
use super::write::WriteError;
use crate::amend::{Amendment, Ground, Operation, Scope, amend};
use crate::diagnostic::Diagnostic;
use crate::git::{ReadError, Repository};
use crate::model::Meter;
use crate::snapshot::Snapshot;
use crate::validation::{
    FileReading, Layout, Search, SourceContent, SourceFile, check, read_file, read_layout,
};

impl Controller {
    /// Checks what a write to a snapshot's commit would be refused for, regardless of rights. Blocking.
    ///
    /// # Errors
    ///
    /// Returns the error that the write would be answered with.
    pub fn check_write(&self, base: &Snapshot, operation: &Operation) -> Result<(), WriteError> {
        let repository = self.repository().map_err(|it| WriteError::Internal(it.to_string()))?;
        let amendment = self.amendment(&repository, base, operation, &[Scope::default()])?;
        if amendment.files.is_empty() {
            return Ok(());
        }
        match self.findings_with(&repository, base, &amendment.files)? {
            None => Ok(()),
            Some(diagnostics) => Err(WriteError::Invalid(diagnostics)),
        }
    }

    /// Returns what a write changes in the files of a snapshot's commit.
    pub(super) fn amendment(
        &self,
        repository: &Repository,
        base: &Snapshot,
        operation: &Operation,
        scopes: &[Scope],
    ) -> Result<Amendment, WriteError> {
        let read = |path: &str| repository.text(base.commit, &self.path_of(path));
        let layout = self.layout_at(repository, base.commit);
        let serial = |group| self.edits_up_to(repository, base.commit)?.edit(group)?.serial;
        let ground = Ground {
            estate: &base.estate,
            origins: &base.origins,
            layout: &layout,
            read: &read,
            serial: &serial,
        };
        amend(&ground, operation, scopes).map_err(WriteError::Refused)
    }

    /// Returns the findings of a commit with other files, if one is an error.
    fn findings_with(
        &self,
        repository: &Repository,
        base: &Snapshot,
        files: &BTreeMap<String, Option<String>>,
    ) -> Result<Option<Vec<Diagnostic>>, WriteError> {
        let meter = Arc::new(Meter::new(self.settings.budget));
        let layout = self.layout_at(repository, base.commit);
        let changed = read_changed(&layout, files);
        let built = {
            let retained = self.retained.lock().unwrap_or_else(PoisonError::into_inner);
            retained.base([base.commit])
        };
        // Most writes change what files say, and are checked in no time.
        let is_same = |it: &Built| it.outcome.commit() == base.commit;
        if changed.len() == files.len()
            && let Some(built) = built.filter(is_same)
            && built.checked.again(&changed, &meter).is_some()
        {
            return Ok(None);
        }
        let entries = repository
            .files(base.commit, &self.settings.path, &meter)
            .map_err(|it| WriteError::Internal(it.to_string()))?;
        let fail = |it: ReadError| WriteError::Internal(it.to_string());
        let kept: Vec<File<'_>> = entries
            .iter()
            .filter(|entry| !files.contains_key(&entry.path))
            .filter_map(|entry| File::of(entry, &layout))
            .collect();
        let mut readings = changed;
        for (file, known) in kept.iter().zip(self.cache.get(&kept)) {
            readings.push(match known {
                Some(reading) => reading,
                None => {
                    let source = source_file(repository, file.entry).map_err(fail)?;
                    Arc::new(read_file(&source, file.kind))
                }
            });
        }
        let settings: Vec<SourceFile> = entries
            .iter()
            .filter(|entry| is_settings(entry))
            .map(|entry| source_file(repository, entry))
            .collect::<Result<_, _>>()
            .map_err(fail)?;
        readings.extend(read_layout(&settings).1.map(Arc::new));
        let checked = check(&layout, &readings, Search::Decisive, &meter);
        Ok((!checked.is_valid()).then_some(checked.diagnostics))
    }
}

/// Reads the changed files that have a part in the repository.
fn read_changed(
    layout: &Layout,
    files: &BTreeMap<String, Option<String>>,
) -> Vec<Arc<FileReading>> {
    let mut readings = Vec::new();
    for (path, text) in files {
        let Some(text) = text else { continue };
        let content = SourceContent::Bytes(text.clone().into_bytes().into());
        let source = SourceFile { path: path.as_str().into(), content };
        if let Some(kind) = layout.kind_of(&source) {
            readings.push(Arc::new(read_file(&source, kind)));
        }
    }
    readings
}
