//! Whether a write would be accepted, without writing anything.

use std::sync::{Arc, PoisonError};

use super::build::{Built, Changes, counts_without, read};
use super::controller::{Controller, LookupError};
use super::turns::Urgency;
use super::write::WriteError;
use crate::changeset::{Changeset, Operation, Scope, WriteContext, compute};
use crate::diagnostic::Diagnostic;
use crate::git::Repository;
use crate::history::History;
use crate::model::{Budget, BudgetItem, Meter};
use crate::snapshot::Snapshot;
use crate::validation::{Checked, FileReading, Layout, SourceContent, SourceFile, read_file};

impl Controller {
    /// Checks what a write to a snapshot's commit would be refused for, regardless of rights. Blocking.
    ///
    /// # Errors
    ///
    /// Returns the error that the write would be answered with.
    pub fn check_write(&self, base: &Snapshot, operation: &Operation) -> Result<(), WriteError> {
        let repository = self.repository().map_err(|it| WriteError::Internal(it.to_string()))?;
        let history = self.history_for(&repository, base, operation);
        let _turn = self.turns.take(Urgency::Reads).ok_or(LookupError::Busy)?;
        let scopes = [Scope::default()];
        let changeset =
            self.amend_now(&repository, base, operation, &scopes, history.as_deref())?;
        if changeset.files.is_empty() {
            return Ok(());
        }
        match self.findings_with(&repository, base, &changeset.files)? {
            None => Ok(()),
            Some(diagnostics) => Err(WriteError::Invalid(diagnostics)),
        }
    }

    /// Returns what a write changes in the files of a snapshot's commit. It takes a turn: a large write
    /// takes as much memory as a commit.
    pub(super) fn changeset(
        &self,
        repository: &Repository,
        base: &Snapshot,
        operation: &Operation,
        scopes: &[Scope],
    ) -> Result<Changeset, WriteError> {
        let history = self.history_for(repository, base, operation);
        let _turn = self.turns.take(Urgency::Decides);
        self.amend_now(repository, base, operation, scopes, history.as_deref())
    }

    /// Returns how often groups were edited, where a write asks. It is found out before the write takes its
    /// turn: builds must not wait for a walk through thousands of commits.
    fn history_for(
        &self,
        repository: &Repository,
        base: &Snapshot,
        operation: &Operation,
    ) -> Option<Arc<History>> {
        if operation.says_serial() { self.edits_up_to(repository, base.commit) } else { None }
    }

    fn amend_now(
        &self,
        repository: &Repository,
        base: &Snapshot,
        operation: &Operation,
        scopes: &[Scope],
        history: Option<&History>,
    ) -> Result<Changeset, WriteError> {
        let read = |path: &str| repository.text(base.commit, &self.path_of(path));
        let layout = self.layout_at(repository, base.commit);
        let serial = |group| history?.edit(group)?.serial;
        let context = WriteContext {
            estate: &base.estate,
            origins: &base.origins,
            layout: &layout,
            read: &read,
            serial: &serial,
        };
        compute(&context, operation, scopes).map_err(WriteError::Refused)
    }

    /// Returns the findings of a commit with other files, if one is an error.
    fn findings_with(
        &self,
        repository: &Repository,
        base: &Snapshot,
        files: &Changes,
    ) -> Result<Option<Vec<Diagnostic>>, WriteError> {
        let budget = self.settings.budget;
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
            && let Some(meter) = charged(&built.checked, &changed, budget)
            && built.checked.incremental(&changed, &meter).is_some()
        {
            return Ok(None);
        }
        let meter = Arc::new(Meter::new(budget));
        let (commit, path) = (base.commit, &self.settings.path);
        let checked = read(repository, commit, path, files, &self.cache, &meter, &|| true)
            .map_err(|it| WriteError::Internal(it.to_string()))?;
        Ok((!checked.is_valid()).then_some(checked.diagnostics))
    }
}

/// Counts what a commit costs with some files replaced; none if that is more than the budget allows.
fn charged(checked: &Checked, changed: &[Arc<FileReading>], budget: Budget) -> Option<Arc<Meter>> {
    let rest = counts_without(checked, changed.iter().map(|it| &*it.path));
    let meter = Meter::from(budget, rest);
    for reading in changed {
        meter.charge_all(&reading.cost).ok()?;
        let bytes = reading.cost.get(BudgetItem::DocumentBytes);
        meter.charge(BudgetItem::DistinctBytes, bytes).ok()?;
    }
    Some(Arc::new(meter))
}

/// Reads the changed files that have a part in the repository.
fn read_changed(layout: &Layout, files: &Changes) -> Vec<Arc<FileReading>> {
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
