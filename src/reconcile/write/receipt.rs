//! Whether clients have heard what became of their writes.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Job, Writer};
use crate::model::CommitId;
use crate::reconcile::journal::Event;

/// What the thread that writes is sent.
pub(super) enum Message {
    /// A write that is wanted.
    Wanted(Box<Job>),
    /// The client of a write was told.
    Told(CommitId),
}

/// Where messages are left, and which clients are being told.
#[derive(Debug)]
pub(super) struct WriteQueue {
    /// None when the daemon stops.
    queue: Mutex<Option<Sender<Message>>>,
    /// The commits of which clients are being told: they count as told until it fails.
    telling: Mutex<HashSet<CommitId>>,
}

/// An answer on its way to a client. The commit counts as untold again if this is dropped before
/// [`DeliveryReceipt::note_sent`]; only what was sent is noted for the time after a restart.
#[derive(Debug)]
pub struct DeliveryReceipt {
    commit: CommitId,
    desk: Arc<WriteQueue>,
    is_sent: AtomicBool,
}

impl DeliveryReceipt {
    pub(super) fn new(commit: CommitId, desk: &Arc<WriteQueue>) -> Self {
        desk.telling().insert(commit);
        Self { commit, desk: Arc::clone(desk), is_sent: AtomicBool::new(false) }
    }

    /// Notes that the answer has left this process.
    pub fn note_sent(&self) {
        // When the daemon stops it is not noted: whoever asks again is answered the same.
        let _stopping = self.desk.leave(Message::Told(self.commit));
        self.is_sent.store(true, Ordering::Relaxed);
    }
}

impl Drop for DeliveryReceipt {
    fn drop(&mut self) {
        if !*self.is_sent.get_mut() {
            self.desk.telling().remove(&self.commit);
        }
    }
}

impl WriteQueue {
    pub(super) fn new(queue: Sender<Message>) -> Self {
        Self { queue: Mutex::new(Some(queue)), telling: Mutex::default() }
    }

    /// Leaves a message; returns it if nobody takes it any more.
    pub(super) fn leave(&self, message: Message) -> Result<(), Message> {
        match self.queue.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(queue) => queue.send(message).map_err(|error| error.0),
            None => Err(message),
        }
    }

    /// Takes no more messages.
    pub(super) fn close(&self) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Returns whether a client is being told of a commit.
    pub(super) fn tells_of(&self, commit: CommitId) -> bool {
        self.telling().contains(&commit)
    }

    fn telling(&self) -> MutexGuard<'_, HashSet<CommitId>> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Notes of which commits the clients were told.
    pub(super) fn note_told(&self, commits: &[CommitId]) {
        if commits.is_empty() {
            return;
        }
        self.controller.note(Event::Answered { commits: commits.to_vec() });
        // From now on the journal knows.
        let mut telling = self.desk.telling();
        telling.retain(|it| !commits.contains(it));
    }
}
