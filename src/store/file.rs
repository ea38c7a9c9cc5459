//! The file of check-ins: opened, put aside when it is damaged, moved when its name is gone.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::check_in::CheckIn;
use super::database::Database;
use super::error::{StoreError, StoreFault};
use super::opening::{find_put_aside_of, open, open_existing, put_aside, write_again};
use super::pending::Pending;
use super::settings::StoreSettings;
use crate::telemetry::Metrics;

/// How long a read waits for the file to be opened after the start.
const OPENING: Duration = Duration::from_secs(5);

/// What is wrong with the store, for people.
#[derive(Clone, Debug, Default)]
pub struct StoreHealth {
    /// Why check-ins cannot be kept or read now.
    pub failing: Option<StoreError>,
    /// The damaged file that was put aside, as long as it is there.
    pub put_aside: Option<PathBuf>,
}

/// The file, which is opened again after a failure.
#[derive(Debug)]
pub(super) struct StoreFile {
    pub(super) settings: StoreSettings,
    metrics: Arc<Metrics>,
    /// Its writer opens a file that failed.
    pending: Arc<Pending>,
    state: Mutex<StoreState>,
    opened: Condvar,
    removals: AtomicU64,
    /// Whether the file of a former version is still to be imported.
    imports: AtomicBool,
}

/// What is known of the file now.
#[derive(Debug)]
pub(super) struct StoreState {
    file: FileState,
    pub(super) health: StoreHealth,
}

#[derive(Debug)]
enum FileState {
    /// It is opened for the first time.
    Opening,
    Open(Arc<Database>),
    /// It failed, and is opened again soon.
    Closed(StoreError),
}

impl StoreFile {
    /// Returns a file that is not open yet.
    pub(super) fn new(
        settings: StoreSettings,
        pending: Arc<Pending>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let put_aside = find_put_aside_of(&settings);
        let health = StoreHealth { failing: None, put_aside };
        let state = Mutex::new(StoreState { file: FileState::Opening, health });
        let (opened, removals) = (Condvar::new(), AtomicU64::default());
        let imports = settings.former.as_deref().is_some_and(Path::exists).into();
        Self { settings, metrics, pending, state, opened, removals, imports }
    }

    /// Notes that something is not kept any more, but for what a client deleted.
    pub(super) fn note_removal(&self) {
        self.removals.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns how often something was removed.
    pub(super) fn removals(&self) -> u64 {
        self.removals.load(Ordering::Acquire)
    }

    /// Locks the state.
    pub(super) fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock()
    }

    /// Returns the open file; waits for it just after the start.
    pub(super) fn database(&self) -> Result<Arc<Database>, StoreError> {
        let opening = |it: &mut StoreState| matches!(it.file, FileState::Opening);
        let mut state = self.state();
        self.opened.wait_while_for(&mut state, opening, OPENING);
        match &state.file {
            FileState::Open(database) => Ok(Arc::clone(database)),
            FileState::Closed(error) => Err(error.clone()),
            FileState::Opening => Err(StoreError::new(
                StoreFault::Busy,
                "read",
                "they are being opened; try again soon",
            )),
        }
    }

    /// Returns the open file, opening it where it is closed, and writing it again where it or its log is gone.
    pub(super) fn ready(&self) -> Result<Arc<Database>, StoreError> {
        let known = match &self.state().file {
            FileState::Open(database) => Some(Arc::clone(database)),
            FileState::Opening | FileState::Closed(_) => None,
        };
        let path = self.settings.location.path();
        // Another process, or a person, may have made the file meanwhile.
        let has_file = path.is_some_and(Path::exists);
        let known = known.filter(|it| !(it.is_in_memory() && has_file));
        let opened = match known {
            Some(database) if database.is_in_place() => return Ok(database),
            Some(database) => {
                if self.state().health.failing.is_none() {
                    tracing::warn!(
                        "the file of the check-ins or its log was removed or cut off; writing all once more"
                    );
                }
                self.replace(&database)?
            }
            None => open_existing(&self.settings).map_err(|error| self.close_with(error))?,
        };
        Ok(self.use_from_now_on(opened))
    }

    /// Writes the content of a file whose name is gone, or a part of it, to a new one, and opens that. Where it cannot
    /// be written, the old one stays open: nothing else has its content, and it can be read. Where it cannot be read, it
    /// is damaged.
    fn replace(&self, database: &Arc<Database>) -> Result<Database, StoreError> {
        let path = self.settings.location.path();
        if let Some(path) = path.filter(|it| !it.exists() || database.has_name()) {
            let written = write_again(path, database);
            written.map_err(|error| match error.fault {
                StoreFault::Damaged => self.fail(database, error),
                _ => error,
            })?;
            self.state().file = FileState::Opening;
            database.close();
        }
        open(&self.settings).map_err(|error| self.close_with(error))
    }

    fn close_with(&self, error: StoreError) -> StoreError {
        self.state().file = FileState::Closed(error.clone());
        self.opened.notify_all();
        error
    }

    /// Returns the open file for writing: the first write makes it.
    pub(super) fn ready_to_write(&self) -> Result<Arc<Database>, StoreError> {
        let database = self.ready()?;
        match self.settings.location.path() {
            Some(_) if database.is_in_memory() => {
                let made = open(&self.settings);
                let made = made.map_err(|error| self.fail(&database, error))?;
                Ok(self.use_from_now_on(made))
            }
            _ => Ok(database),
        }
    }

    fn use_from_now_on(&self, opened: Database) -> Arc<Database> {
        if let Ok(size) = opened.size() {
            self.metrics.set_check_ins(size.nodes, size.bytes);
        }
        let opened = Arc::new(opened);
        let mut state = self.state();
        state.health.put_aside = find_put_aside_of(&self.settings);
        state.file = FileState::Open(Arc::clone(&opened));
        self.opened.notify_all();
        drop(state);
        // It may have less than the one before.
        self.note_removal();
        opened
    }

    /// Notes that an operation on an open file failed: one that cannot be used any more is closed,
    /// and put aside where it is damaged.
    pub(super) fn fail(&self, database: &Arc<Database>, error: StoreError) -> StoreError {
        let is_gone = error.fault == StoreFault::TimedOut && database.is_server();
        // Memory has no other place to be read from.
        if database.is_in_memory() || !(error.ends_the_file() || is_gone) {
            return error;
        }
        let mut state = self.state();
        let is_this = matches!(&state.file, FileState::Open(open) if Arc::ptr_eq(open, database));
        if !is_this {
            return error;
        }
        let path = self.settings.location.path();
        if let Some(path) = path.filter(|_| error.calls_for_a_new_file()) {
            // Where this fails, opening it fails too, and says so.
            put_aside(path, &error).ok();
            state.health.put_aside = find_put_aside_of(&self.settings);
        }
        state.file = FileState::Closed(error.clone());
        drop(state);
        // The writer opens it again.
        self.pending.wake_writer();
        error
    }

    /// Closes the file at the end: then it has all that was written, and no log stands beside it.
    pub(super) fn close(&self) {
        let open = match &self.state().file {
            FileState::Open(database) if database.has_file() => Arc::clone(database),
            _ => return,
        };
        open.end();
    }

    /// Notes that the file of a former version is not in its place any more: imported, put aside, or taken away.
    pub(super) fn end_import(&self) {
        self.imports.store(false, Ordering::Release);
        self.state().health.put_aside = find_put_aside_of(&self.settings);
        // What was not known is.
        self.note_removal();
    }

    /// Returns whether the file of a former version is still to be imported.
    pub(super) fn imports(&self) -> bool {
        self.imports.load(Ordering::Acquire)
    }

    /// Returns the file that was put aside, if it is still there.
    pub(super) fn put_aside(&self) -> Option<PathBuf> {
        let mut state = self.state();
        if state.health.put_aside.as_ref().is_some_and(|it| !it.exists()) {
            state.health.put_aside = find_put_aside_of(&self.settings);
        }
        state.health.put_aside.clone()
    }

    /// Returns an error if a damaged file is put aside, or that of a former version is not imported yet, that may hold
    /// facts or trusted data which the check-in lacks.
    pub(super) fn lost(&self, name: &str, check_in: Option<&CheckIn>) -> Option<StoreError> {
        let is_whole = |it: &CheckIn| !it.node.fact.is_empty() && !it.node.trusted.is_empty();
        if check_in.is_some_and(is_whole) {
            return None;
        }
        self.unread(
            name,
            "the node is known again when it checks in with facts and trusted data, or when that file is removed",
        )
    }

    /// Returns an error if such a file may hold data of a node that is deleted from the store.
    pub(super) fn remains(&self, name: &str) -> Option<StoreError> {
        self.unread(name, "remove that file, and delete the node again")
    }

    /// Returns an error that names a file that may hold data of a node and is not read, with what to do about one that was
    /// damaged.
    fn unread(&self, name: &str, help: &str) -> Option<StoreError> {
        if self.imports()
            && let Some(path) = &self.settings.former
        {
            let reason = format!(
                "`{}` of a former version is not imported yet, and may hold facts or trusted data of `{name}`: send the request again later",
                path.display()
            );
            return Some(StoreError::new(StoreFault::NotImported, "read", reason));
        }
        let path = self.put_aside()?;
        let reason = format!(
            "`{}` was damaged and put aside, and may hold facts or trusted data of `{name}`; {help}",
            path.display()
        );
        Some(StoreError::new(StoreFault::PutAside, "read", reason))
    }
}
