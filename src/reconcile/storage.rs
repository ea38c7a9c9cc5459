//! Writing to the journal, and what happens when the disk does not take it.

use std::io;
use std::sync::PoisonError;
use std::time::Duration;

use super::clock::Now;
use super::controller::Controller;
use super::journal::Event;
use super::settings::Target;
use super::status::Reason;

/// How often the clock and the journal's file are checked.
const INTERVAL: Duration = Duration::from_secs(1);

/// Something could not be written to disk, so it did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal cannot be written, so nothing was changed: {0}")]
pub struct StorageError(String);

impl Controller {
    /// Records what an operator or a client is told next: on disk, or it does not happen.
    pub(super) fn record(&self, event: Event) -> Result<(), StorageError> {
        let written = self.journal().append(event, Now::read());
        let failed = written.as_ref().err().map(|error| StorageError(error.to_string()));
        self.note_storage(written);
        failed.map_or(Ok(()), Err)
    }

    /// Records what has happened anyway. Where the disk does not take it, answers go on, the status
    /// says so, and it is written as soon as the disk does.
    pub(super) fn note(&self, event: Event) {
        let written = {
            let mut journal = self.journal();
            let before = journal.live();
            self.report(&event, before);
            journal.keep(event, Now::read())
        };
        self.note_storage(written);
    }

    /// Finds out at the start whether the journal can be written.
    pub(super) fn check_storage(&self) {
        let written = self.journal().save_all();
        self.note_storage(written);
    }

    fn note_storage(&self, written: io::Result<()>) {
        let storage = match written {
            Err(error) => {
                let reason = match error.kind() {
                    io::ErrorKind::StorageFull => Reason::DiskFull,
                    _ => Reason::WriteFailed,
                };
                Some((reason, format!("the journal cannot be written: {error}")))
            }
            Ok(()) => self.temporary_mirror(),
        };
        let mut state = self.state();
        let before = std::mem::replace(&mut state.storage, storage.clone());
        drop(state);
        match (before, storage) {
            (None, Some((_, message))) => tracing::warn!("{message}"),
            (Some(_), None) => tracing::info!("the journal can be written again"),
            _ => {}
        }
    }

    /// Returns what the condition says while fetched commits do not go to the data directory.
    fn temporary_mirror(&self) -> Option<(Reason, String)> {
        let Target::Remote(mirror) = &self.settings.target else { return None };
        let message = "the data directory was read-only at the start, so fetched commits are kept in a \
                       temporary directory: restart the daemon";
        mirror.is_temporary().then(|| (Reason::WriteFailed, message.to_owned()))
    }

    /// Writes what the disk did not take, and notices when the clock is set, until the controller is
    /// stopped.
    pub(super) fn keep_journal(&self) {
        loop {
            let waited = self.changed.wait_timeout_while(self.state(), INTERVAL, |it| !it.stopping);
            let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let (stopping, failing) = (state.stopping, state.storage.is_some());
            drop(state);
            let written = {
                let mut journal = self.journal();
                journal.check_clock(Now::read());
                if failing { journal.retry() } else { journal.save_all() }
            };
            self.note_storage(written);
            if stopping {
                return;
            }
        }
    }
}
