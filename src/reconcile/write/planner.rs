//! What a write changes, and whether it would be accepted.

use std::cell::OnceCell;
use std::sync::Arc;

use super::request::{WriteError, WriteRequest};
use crate::changeset::{
    Changeset, Operation, PermittedWrite, WriteContext, WriteGrant, WriteOutcome, compute,
    is_in_effect,
};
use crate::diagnostic::Diagnostic;
use crate::git::{ReadError, Repository};
use crate::history::History;
use crate::model::{Budget, BudgetItem, Meter};
use crate::reconcile::build::counts_without;
use crate::reconcile::build_queue::Priority;
use crate::reconcile::commit_tree::Changes;
use crate::reconcile::edit_history::EditHistory;
use crate::reconcile::errors::LookupError;
use crate::reconcile::read::Reading;
use crate::reconcile::snapshot_store::SnapshotStore;
use crate::reconcile::source::Source;
use crate::snapshot::Snapshot;
use crate::validation::{Checked, FileReading, Layout, SourceContent, SourceFile, read_file};

/// Plans writes.
#[derive(Debug)]
pub(in crate::reconcile) struct WritePlanner {
    pub(in crate::reconcile) source: Arc<Source>,
    pub(in crate::reconcile) store: Arc<SnapshotStore>,
    pub(in crate::reconcile) edits: Arc<EditHistory>,
}

impl WritePlanner {
    /// Checks whether a write to a snapshot's commit would be accepted, regardless of rights. Blocking.
    ///
    /// # Errors
    ///
    /// Returns the error of the write.
    pub(in crate::reconcile) fn check(
        &self,
        base: &Snapshot,
        operation: &Operation,
    ) -> Result<(), WriteError> {
        let repository = self.source.repository().map_err(LookupError::from)?;
        let grants = [WriteGrant::default()];
        let write = Self::permitted(base, operation, &grants)?;
        let history = self.history_for(&repository, base, operation);
        let _slot = self.store.queue().take(Priority::Reads).ok_or(LookupError::Busy)?;
        let changeset = self.changeset_now(&repository, base, write, history.as_deref())?;
        if changeset.files.is_empty() {
            return Ok(());
        }
        match self.findings_with(&repository, base, &changeset.files)? {
            None => Ok(()),
            Some(diagnostics) => Err(WriteError::Invalid(diagnostics)),
        }
    }

    /// Returns what a write changes in the files of a snapshot's commit. It takes a build slot: a large
    /// write takes as much memory as a commit. A client without the right to it takes none.
    pub(super) fn plan(
        &self,
        repository: &Repository,
        base: &Snapshot,
        operation: &Operation,
        grants: &[WriteGrant],
    ) -> Result<Changeset, WriteError> {
        let write = Self::permitted(base, operation, grants)?;
        let history = self.history_for(repository, base, operation);
        let _slot = self.store.queue().take(Priority::Decides);
        self.changeset_now(repository, base, write, history.as_deref())
    }

    /// Returns whether everything is as a write left it that was made before.
    pub(super) fn is_in_effect(
        &self,
        repository: &Repository,
        base: &Snapshot,
        request: &WriteRequest,
        outcome: &WriteOutcome,
    ) -> Result<bool, WriteError> {
        let WriteRequest { operation, grants, .. } = request;
        let _slot = self.store.queue().take(Priority::Decides);
        self.in_context(repository, base, None, |context| {
            is_in_effect(context, operation, grants, outcome)
        })
    }

    /// Checks the rights of a write to a snapshot, as far as they are known before it is computed.
    ///
    /// # Errors
    ///
    /// Returns the refusal.
    pub(super) fn check_rights(base: &Snapshot, request: &WriteRequest) -> Result<(), WriteError> {
        let WriteRequest { operation, grants, .. } = request;
        Self::permitted(base, operation, grants).map(|_| ())
    }

    /// Checks them also of a write of which they are known only when it is computed.
    ///
    /// # Errors
    ///
    /// Returns the refusal.
    pub(super) fn check_all_rights(
        &self,
        base: &Snapshot,
        request: &WriteRequest,
    ) -> Result<(), WriteError> {
        let WriteRequest { operation, grants, .. } = request;
        let _slot = self.store.queue().take(Priority::Decides);
        let permitted = PermittedWrite::of_any(&base.estate.hierarchy, operation, grants);
        permitted.map(|_| ()).map_err(WriteError::Rejected)
    }

    fn permitted<'w>(
        base: &Snapshot,
        operation: &'w Operation,
        grants: &'w [WriteGrant],
    ) -> Result<PermittedWrite<'w>, WriteError> {
        let hierarchy = &base.estate.hierarchy;
        PermittedWrite::new(hierarchy, operation, grants).map_err(WriteError::Rejected)
    }

    /// Returns the edits of groups, where a write depends on them. They are found out before the write
    /// takes its slot: builds must not wait for a walk through thousands of commits.
    fn history_for(
        &self,
        repository: &Repository,
        base: &Snapshot,
        operation: &Operation,
    ) -> Option<Arc<History>> {
        if operation.says_serial() { self.edits.up_to(repository, base.commit) } else { None }
    }

    fn changeset_now(
        &self,
        repository: &Repository,
        base: &Snapshot,
        write: PermittedWrite<'_>,
        history: Option<&History>,
    ) -> Result<Changeset, WriteError> {
        self.in_context(repository, base, history, |context| compute(context, write))?
            .map_err(WriteError::Rejected)
    }

    /// Calls a function with the state that writes to a snapshot's commit are computed against.
    fn in_context<T>(
        &self,
        repository: &Repository,
        base: &Snapshot,
        history: Option<&History>,
        of: impl FnOnce(&WriteContext<'_>) -> T,
    ) -> Result<T, WriteError> {
        // What cannot be read must not be taken for a file that is not there: it would be written over.
        let failure = OnceCell::new();
        let note = |error: ReadError| drop(failure.set(error));
        let read = |path: &str| {
            self.source.text(repository, base.commit, path).map_err(note).ok().flatten()
        };
        let names = |directory: &str| {
            self.source.names(repository, base.commit, directory).map_err(note).unwrap_or_default()
        };
        let layout =
            self.source.layout(repository, base.commit).map_err(|it| self.unreadable(&it))?;
        let serial = |group| history?.edit(group)?.serial;
        let done = of(&WriteContext {
            estate: &base.estate,
            origins: &base.origins,
            layout: &layout,
            read: &read,
            names: &names,
            serial: &serial,
        });
        failure.get().map_or(Ok(done), |error| Err(self.unreadable(error)))
    }

    /// Returns the error of a write that needs an object that cannot be read, and has it fetched again.
    pub(super) fn unreadable(&self, error: &ReadError) -> WriteError {
        self.store.note_unreadable(error);
        WriteError::of_object(error, self.source.kind())
    }

    /// Returns the findings of a commit with other files, if one is an error.
    fn findings_with(
        &self,
        repository: &Repository,
        base: &Snapshot,
        files: &Changes,
    ) -> Result<Option<Vec<Arc<Diagnostic>>>, WriteError> {
        let budget = self.store.budget();
        let layout =
            self.source.layout(repository, base.commit).map_err(|it| self.unreadable(&it))?;
        let changed = read_changed(&layout, files);
        let removed: Vec<&str> =
            files.iter().filter(|(_, it)| it.is_none()).map(|(path, _)| path.as_str()).collect();
        // Most writes change a few groups, which is checked within a millisecond.
        if changed.len() + removed.len() == files.len()
            && let Some(built) = self.store.cached_build(base.commit)
            && let Some(meter) = charged(&built.checked, &changed, &removed, budget)
            && built.checked.incremental(&changed, &removed, &meter).is_some()
        {
            return Ok(None);
        }
        let reading = Reading {
            repository,
            commit: base.commit,
            directory: self.source.path(),
            cache: self.store.readings(),
            meter: &Arc::new(Meter::new(budget)),
            is_wanted: &|| true,
        };
        let kind = self.source.kind();
        let checked = reading.check(files).map_err(|it| WriteError::of_build(&it, kind))?;
        Ok((!checked.is_valid()).then_some(checked.diagnostics))
    }
}

/// Counts what a commit costs with some files added or replaced and some removed; none if that is more than the
/// budget allows. New directories do not count.
fn charged(
    checked: &Checked,
    changed: &[Arc<FileReading>],
    removed: &[&str],
    budget: Budget,
) -> Option<Arc<Meter>> {
    let differing = changed.iter().map(|it| &*it.path).chain(removed.iter().copied());
    let meter = Meter::from(budget, counts_without(checked, differing));
    for reading in changed {
        if checked.reading(&reading.path).is_none() {
            meter.charge(BudgetItem::Entries, 1).ok()?;
            meter.charge(BudgetItem::PathBytes, reading.path.len() as u64).ok()?;
        }
        meter.charge_all(&reading.cost()).ok()?;
        let bytes = reading.cost().get(BudgetItem::DocumentBytes);
        meter.charge(BudgetItem::DistinctBytes, bytes).ok()?;
    }
    Some(Arc::new(meter))
}

/// Reads the changed files that the groups are made of.
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
