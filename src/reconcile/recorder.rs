//! Writing to the journal, and what happens when the disk does not take it.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

use super::attribution::{Attribution, Pin};
use super::clock::Now;
use super::commit_status::StatusQueue;
use super::contact_file::ContactFile;
use super::errors::StorageError;
use super::journal::{Event, Journal, Record, Stage};
use super::pin_file::PinFile;
use super::shared_state::SharedState;
use super::source::Source;
use super::status::Reason;
use crate::git::CommitPresence;
use crate::model::CommitId;

/// How often the clock and the journal's file are checked.
const INTERVAL: Duration = Duration::from_secs(1);

/// Records events in the journal, and passes them to the commit statuses.
#[derive(Debug)]
pub(super) struct Recorder {
    journal: Mutex<Journal>,
    state: Arc<SharedState>,
    source: Arc<Source>,
    /// Where a forge gets commit statuses.
    statuses: Option<Arc<StatusQueue>>,
    /// Where the time of the last fetch is kept.
    contact: Option<ContactFile>,
    /// Where the pin is kept as well.
    pin: Option<PinFile>,
}

/// The pin from before the restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RecoveredPin {
    /// What the journal says of it now.
    Settled(Option<Pin>),
    /// The journal lost it, and it is not known yet whether the repository has its commit.
    Unsettled(Pin),
}

/// Returns whether the journal has neither a decision nor one after it.
fn is_lost(journal: &Journal, decision: &Record) -> bool {
    !journal.records().contains(decision)
        && journal.last_decision().is_none_or(|it| it.time <= decision.time)
}

impl Recorder {
    pub(super) fn new(
        journal: Journal,
        state: Arc<SharedState>,
        source: Arc<Source>,
        statuses: Option<Arc<StatusQueue>>,
        contact: Option<ContactFile>,
        pin: Option<PinFile>,
    ) -> Self {
        Self { journal: Mutex::new(journal), state, source, statuses, contact, pin }
    }

    /// Locks the journal for reading.
    pub(super) fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock()
    }

    /// Returns the pin from before the restart. Where the journal lost the last pin or resume, it is recorded again;
    /// `presence` says whether the repository has a commit.
    pub(super) fn recovered_pin(
        &self,
        presence: impl FnOnce(CommitId) -> CommitPresence,
    ) -> RecoveredPin {
        if let Some(lost) = self.lost_decision() {
            match &lost.event {
                Event::Pinned { commit, by } => match presence(*commit) {
                    // Such as of another repository. It ends here: at a later start the commit may be there.
                    CommitPresence::Absent => {
                        tracing::error!(
                            %commit,
                            "the journal lost a pin, and the repository does not have its commit: the branch is followed"
                        );
                        let resumed = Event::Resumed { by: Attribution::default(), accepts: None };
                        self.restore(&lost, resumed);
                    }
                    CommitPresence::Present => {
                        tracing::error!(%commit, "the journal lost the pin, which stays: resume to follow the branch");
                        self.restore(&lost, lost.event.clone());
                    }
                    CommitPresence::Unknown => {
                        let pin = Pin { commit: *commit, since: lost.time, by: by.clone() };
                        return RecoveredPin::Unsettled(pin);
                    }
                },
                _ => {
                    tracing::error!(
                        "the journal lost that an operator resumed: the branch is followed"
                    );
                    self.restore(&lost, lost.event.clone());
                }
            }
        }
        self.save_pin();
        RecoveredPin::Settled(self.journal().pinned())
    }

    /// Returns the last pin or resume if the journal does not have it, nor one after it.
    fn lost_decision(&self) -> Option<Record> {
        let noted = self.pin.as_ref()?.load()?;
        is_lost(&self.journal(), &noted).then_some(noted)
    }

    /// Records what follows from a decision that the journal lost, unless an operator has decided since.
    fn restore(&self, lost: &Record, event: Event) {
        let written = {
            let mut journal = self.journal();
            if !is_lost(&journal, lost) {
                return;
            }
            self.keep(&mut journal, event)
        };
        self.note_storage(written);
    }

    /// Returns the commits that stay here whatever the remote forgets: the live and the pinned one, with which a restart
    /// answers, and those that were live before, which answers are compared with.
    pub(super) fn kept_commits(&self) -> Vec<CommitId> {
        /// How many they are at most, the newest.
        const MOST: usize = 256;
        let (live, pinned) = {
            let state = self.state.lock();
            (state.live(), state.pinned())
        };
        let journal = self.journal();
        let noted = journal.pinned().map(|it| it.commit);
        let before = journal.activations().rev().map(|(_, commit)| commit);
        let all = live.into_iter().chain(pinned).chain(noted).chain(before);
        let mut seen = HashSet::new();
        all.filter(|it| seen.insert(*it)).take(MOST).collect()
    }

    /// Keeps the last pin or resume of the journal for when the journal is lost.
    pub(super) fn save_pin(&self) {
        if let Some(file) = &self.pin {
            // A copy: the journal is not locked while the file is written.
            file.save_last(|| self.journal().last_decision().cloned());
        }
    }

    /// Returns when the branch was last seen before the restart.
    pub(super) fn last_contact(&self, now: Now) -> Option<Timestamp> {
        let mut contacts = self.journal().contacts();
        contacts.extend(self.contact.as_ref().and_then(ContactFile::load));
        // A time that has not come yet is of a clock that ran ahead, or was set back since.
        let past = contacts.iter().copied().filter(|it| *it <= now.wall).max();
        past.or_else(|| (!contacts.is_empty()).then_some(now.wall))
    }

    /// Records an event of which an operator or a client is told next: it is on disk, or it does not
    /// happen.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be written.
    pub(super) fn record(&self, event: Event) -> Result<(), StorageError> {
        let written = self.journal().append(event, Now::read());
        let failed = written
            .as_ref()
            .err()
            .map(|error| StorageError { what: "the journal", reason: error.to_string() });
        self.note_storage(written);
        failed.map_or(Ok(()), Err)
    }

    /// Records an event that has happened anyway. Where the disk does not take it, answers go on, the
    /// status says so, and it is written as soon as the disk does.
    pub(super) fn note(&self, event: Event) {
        let written = self.keep(&mut self.journal(), event);
        self.note_storage(written);
    }

    /// Records that a commit is rejected. One that cannot be read is built again at each fetch: that is recorded once.
    pub(super) fn note_rejected(&self, commit: CommitId, stage: Stage) {
        let written = {
            let mut journal = self.journal();
            if stage == Stage::Load && journal.rejected_at(commit) == Some(stage) {
                return;
            }
            self.keep(&mut journal, Event::Rejected { commit, stage })
        };
        self.note_storage(written);
    }

    /// Records that a valid commit is held. One that is built again after a restart is held as before: that is recorded once.
    pub(super) fn note_held(&self, commit: CommitId) {
        let written = {
            let mut journal = self.journal();
            if journal.is_held(commit) {
                return;
            }
            self.keep(&mut journal, Event::Held { commit })
        };
        self.note_storage(written);
    }

    fn keep(&self, journal: &mut Journal, event: Event) -> io::Result<()> {
        if let Some(statuses) = &self.statuses {
            statuses.push_event(&event, journal.live());
        }
        journal.keep(event, Now::read())
    }

    /// Finds out at the start whether the journal can be written.
    pub(super) fn check_storage(&self) {
        let written = self.journal().retry();
        self.note_storage(written);
    }

    fn note_storage(&self, written: io::Result<()>) {
        let storage = match written {
            Err(error) => {
                let reason = match error.kind() {
                    io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::FileTooLarge => Reason::DiskFull,
                    _ => Reason::WriteFailed,
                };
                Some((reason, format!("the journal cannot be written: {error}")))
            }
            Ok(()) => self.source.storage_fault(),
        };
        let before = std::mem::replace(&mut self.state.lock().storage, storage.clone());
        match (before, storage) {
            (None, Some((_, message))) => tracing::warn!("{message}"),
            (Some(_), None) => tracing::info!("the journal can be written again"),
            _ => {}
        }
    }

    /// Writes what the disk did not take, and notices when the clock is set, until the daemon stops.
    pub(super) fn run(&self) {
        loop {
            let stopping = self.state.stops_within(INTERVAL);
            self.tick();
            if stopping {
                return;
            }
        }
    }

    /// Writes what the disk did not take and when the branch was last seen, notices when the clock is set, and
    /// notes which conditions hold.
    pub(super) fn tick(&self) {
        self.state.lock().note_conditions(Now::read());
        let failing = self.state.lock().storage.is_some();
        let written = {
            let mut journal = self.journal();
            journal.check_clock(Now::read());
            if failing { journal.retry() } else { journal.save_all() }
        };
        self.note_storage(written);
        if self.pin.as_ref().is_some_and(PinFile::is_due) {
            self.save_pin();
        }
        self.save_contact();
        self.check_objects();
    }

    /// Keeps the time of the last fetch for the next start.
    fn save_contact(&self) {
        let Some(file) = &self.contact else { return };
        let now = Now::read();
        let (last_seen, is_urgent) = {
            let state = self.state.lock();
            (state.last_seen(now), state.failure.is_some() || state.stopping)
        };
        if let Some(time) = last_seen {
            file.save(time, is_urgent, now);
        }
    }

    /// Finds out whether objects can be written again that the disk did not take.
    fn check_objects(&self) {
        if !self.state.lock().is_unwritable() {
            return;
        }
        if self.source.repository().is_ok_and(|it| it.check_writable().is_ok()) {
            self.state.lock().note_unwritten(None);
            tracing::info!("the repository can be written again");
        }
    }
}
